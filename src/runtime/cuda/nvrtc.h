#pragma once

// NVIDIA's run-time compiler, libnvrtc, opened at run time. It compiles CUDA C++ to PTX or machine code. Building needs
// no toolkit, and compiling needs neither a driver nor a GPU. On a machine without the library, open() returns the
// reason.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "runtime/cuda/driver_library.h"
#include "runtime/cuda/nvrtc_functions.h"

namespace weft::cuda {

// 1000 * major + 10 * minor: the first version with C++20.
inline constexpr int kLeastNvrtcVersion = 12000;

struct NvrtcSource {
  std::string name;  // for messages
  std::string text;
  // The names that #include uses, and the texts. <cstdint> is always available.
  std::vector<std::pair<std::string, std::string>> headers;
};

enum class NvrtcCode : std::uint8_t { ptx, machine_code };

class Nvrtc {
 public:
  // Opens the library at the first of `places` that has a version that is new enough. Places are paths, or names that
  // the loader looks up. Where none has one, returns null and sets `problem` to what was wanted, what was found and
  // where it was looked for.
  static std::unique_ptr<Nvrtc> open(const std::vector<std::string>& places, std::string& problem);
  // The same for a library that is already open; `library` is for messages.
  static std::unique_ptr<Nvrtc> open(const FindSymbol& find, const std::string& library, std::string& problem);

  int version() const { return version_; }
  const std::string& library() const { return library_; }               // the place that it was opened from
  const std::vector<int>& architectures() const { return supported_; }  // 90 for sm_90, ascending

  // Compiles for one architecture, 90 for sm_90. Multiplications and additions are not contracted unless `options`
  // request it. UserError with the compiler's log where the source does not compile, and where the compiler does not
  // support the architecture. DeviceError, also with the log, where compiling fails for another reason, such as a
  // missing part of the compiler. Thread-safe.
  std::string compile(const NvrtcSource& source, int architecture, NvrtcCode code,
                      const std::vector<std::string>& options = {}) const;
  // A text of everything else that a compilation depends on, apart from source, headers and version; for cache keys.
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

// Where NVRTC may be, best first: the toolkit of CUDA_HOME, what the loader knows, /usr/local/cuda, the cache
// (tools/fetch_nvcc.py), and the package nvidia-cuda-nvrtc in the Python of VIRTUAL_ENV. Folders that do not exist are
// included.
std::vector<std::string> nvrtc_places(const EnvironmentLookup& environment);

// "13.0 of PATH, for sm_75 to sm_121"; or "none: " and the reason.
std::string nvrtc_text();

}  // namespace weft::cuda
