#pragma once

// The CUDA driver of this machine, libcuda.so.1, opened while the program runs. No header and no library of a toolkit
// is needed to build; a machine without a driver has no devices, and a reason for it.

#include <functional>
#include <memory>
#include <string>

#include "runtime/cuda/driver.h"

namespace weft::cuda {

// The address of a symbol, null where there is none.
using FindSymbol = std::function<void*(const char* symbol)>;

// Nothing, and why in `problem`, when there is no driver, it is too old, or it has no device that Weft can use. Makes
// no context on any device: that is done by the first call that needs one.
std::unique_ptr<Driver> open_cuda(std::string& problem, const std::string& library = "libcuda.so.1");

// The same for a library that is opened already.
std::unique_ptr<Driver> open_cuda(const FindSymbol& find, std::string& problem);

}  // namespace weft::cuda
