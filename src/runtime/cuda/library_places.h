#pragma once

// Finds the CUDA libraries that are opened at run time, and opens the first that fits.

#include <functional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "runtime/cuda/driver_library.h"

namespace weft::cuda {

struct CudaLibrary {
  std::string front;                  // the file's name before the major version: "libnvrtc.so."
  std::vector<std::string> packages;  // folders of nvidia/ in Python's packages that may have it
  std::string cache;                  // name prefix of cache folders that hold such packages; "" for none
};

// The paths to try, best first: the toolkit of CUDA_HOME, what the loader knows, /usr/local/cuda, the cache, and the
// Python of VIRTUAL_ENV. Folders that do not exist are included.
std::vector<std::string> library_places(const CudaLibrary& library, const EnvironmentLookup& environment);

// Returns whether to use the library that was opened at `place`; if not, sets `problem` to the reason.
using TakeLibrary = std::function<bool(const FindSymbol& find, const std::string& place, std::string& problem)>;

// Returns "" once a library was taken; else a message with `wanted` ("libnvrtc of CUDA 12.0 or newer"), what was found
// and where it was looked for. `before` is called with each place before it is opened.
std::string open_first(const std::vector<std::string>& places, const std::string& wanted, const TakeLibrary& take,
                       const std::function<void(const std::string& place)>& before = {});

}  // namespace weft::cuda
