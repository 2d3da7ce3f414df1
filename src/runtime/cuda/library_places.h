#pragma once

// Where libraries of CUDA lie that are opened while the program runs, and the first of them that fits.

#include <functional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "runtime/cuda/driver_library.h"

namespace weft::cuda {

struct CudaLibrary {
  std::string front;                  // of its file's name, before the major version: "libnvrtc.so."
  std::vector<std::string> packages;  // folders of nvidia/ in a Python's packages that have it
  std::string cache;                  // the front of folders of the cache that hold such packages; "" for none
};

// Best first: the toolkit of CUDA_HOME, what the loader knows, /usr/local/cuda, the cache, and the Python of
// VIRTUAL_ENV. Folders that are not there are named too.
std::vector<std::string> library_places(const CudaLibrary& library, const EnvironmentLookup& environment);

// Whether the library that was opened at the place is taken; else why not.
using TakeLibrary = std::function<bool(const FindSymbol& find, const std::string& place, std::string& problem)>;

// "" once one was taken; else `wanted` ("libnvrtc of CUDA 12.0 or newer"), what was found and where it was looked for.
// `before` is called with each place before it is opened.
std::string open_first(const std::vector<std::string>& places, const std::string& wanted, const TakeLibrary& take,
                       const std::function<void(const std::string& place)>& before = {});

}  // namespace weft::cuda
