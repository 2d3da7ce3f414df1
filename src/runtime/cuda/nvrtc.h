#pragma once

// NVIDIA's run-time compiler, libnvrtc, opened while the program runs: CUDA C++ becomes PTX or machine code. No toolkit
// is needed to build, and neither a driver nor a GPU to compile. A machine without it has a reason for that.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "runtime/cuda/driver_library.h"
#include "runtime/cuda/nvrtc_functions.h"

namespace weft::cuda {

// 1000 * major + 10 * minor. C++20 came with it.
inline constexpr int kLeastNvrtcVersion = 12000;

struct NvrtcSource {
  std::string name;  // in messages
  std::string text;
  // As #include names them, and their text. <cstdint> is there.
  std::vector<std::pair<std::string, std::string>> headers;
};

enum class NvrtcCode : std::uint8_t { ptx, machine_code };

class Nvrtc {
 public:
  // From the first place that has it; null, and in `problem` what was wanted, what was found and where it was looked
  // for, where none has one that is new enough. Places are paths or names that the loader looks up.
  static std::unique_ptr<Nvrtc> open(const std::vector<std::string>& places, std::string& problem);
  // The same for one library that is opened already; `library` stands in messages.
  static std::unique_ptr<Nvrtc> open(const FindSymbol& find, const std::string& library, std::string& problem);

  int version() const { return version_; }
  const std::string& library() const { return library_; }               // the place
  const std::vector<int>& architectures() const { return supported_; }  // 90 for sm_90, in rising order

  // The code for one architecture, 90 for sm_90. Sums and products are not contracted unless `options` say so.
  // UserError with the compiler's log where the source does not compile, and where it does not know the architecture;
  // DeviceError, also with the log, where it fails for another reason, such as a part of it that is missing. For
  // several threads.
  std::string compile(const NvrtcSource& source, int architecture, NvrtcCode code,
                      const std::vector<std::string>& options = {}) const;
  // What such a compilation is made with besides source, headers and version; for keys.
  static std::string recipe(int architecture, NvrtcCode code, const std::vector<std::string>& options);

 private:
  class Program;
  Nvrtc(const NvrtcFunctions& functions, std::string library, int version, std::vector<int> supported)
      : functions_(functions), library_(std::move(library)), version_(version), supported_(std::move(supported)) {}
  void check(NvrtcStatus status, const char* call) const;

  NvrtcFunctions functions_;
  std::string library_;
  int version_;
  std::vector<int> supported_;
};

// 13.0 of 13000.
std::string nvrtc_version_text(int version);

// Where an NVRTC may lie, best first: the toolkit of CUDA_HOME, what the loader knows, /usr/local/cuda, the cache
// (tools/fetch_nvcc.py), and the package nvidia-cuda-nvrtc in the Python of VIRTUAL_ENV. Folders that are not there are
// named too.
std::vector<std::string> nvrtc_places(const EnvironmentLookup& environment);

// "13.0 of PATH, for sm_75 to sm_121"; or "none: " and why.
std::string nvrtc_text();

}  // namespace weft::cuda
