#pragma once

// Who runs what of the generated functions of a Context that is for a device, for reports.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace weft {

struct DeviceFunctions {
  std::size_t functions = 0;  // that were generated
  std::size_t launched = 0;   // of these, as code of the device; the host runs the others in the order of the stream
  std::string code;           // "PTX for sm_90", as the device takes it; "" where it takes none
  std::string compiler;       // "NVRTC 13.0"; "" where there is none
  std::string reason;         // why nothing can be compiled for the device; "" where it can
  std::vector<std::pair<std::string, std::string>> on_host = {};  // functions with a reason of their own, and that
  std::string host_problem = {};  // why nothing can be compiled for the host; "" where it can
};

}  // namespace weft
