#pragma once

// Which generated functions run on the device and which on the host, for reports on a Context with a device.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace weft {

struct DeviceFunctions {
  std::size_t functions = 0;  // the number of generated functions
  std::size_t launched = 0;   // those that run as device code; the host runs the others in the order of the stream
  std::string code;           // the form of code that the device takes, "PTX for sm_90"; "" if it takes none
  std::string compiler;       // "NVRTC 13.0"; "" if there is none
  std::string reason;         // why nothing can be compiled for the device; "" if it can
  std::vector<std::pair<std::string, std::string>> on_host = {};  // functions that only the host runs, with the reason
  std::string host_problem = {};  // why nothing can be compiled for the host; "" if it can
};

}  // namespace weft
