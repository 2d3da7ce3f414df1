#pragma once

// The CUDA driver of this machine, libcuda.so.1, opened at run time. Building needs no header and no library of a
// toolkit. A machine without a driver has no devices, and open_cuda returns the reason.

#include <functional>
#include <memory>
#include <string>

#include "runtime/cuda/driver.h"

namespace weft::cuda {

// The address of a symbol; null if it does not exist.
using FindSymbol = std::function<void*(const char* symbol)>;

// Returns null, and the reason in `problem`, when there is no driver, when it is too old, or when it has no device that
// Weft can use. Creates no context on any device: the first call that needs one does.
std::unique_ptr<Driver> open_cuda(std::string& problem, const std::string& library = "libcuda.so.1");

// The same for a library that is already open.
std::unique_ptr<Driver> open_cuda(const FindSymbol& find, std::string& problem);

}  // namespace weft::cuda
