#include "runtime/cuda/current_guard.h"

#include <fmt/core.h>

namespace weft::cuda {
namespace {

Stream stream_of_arguments(Driver& driver, std::span<const void* const> arguments) {
  std::optional<int> device;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == nullptr) continue;
    const std::optional<int> found = driver.device_of(arguments[i]);
    if (!found) fail_device("[launch] argument {} must be in a device's memory, but is in the host's", i);
    if (device && *device != *found)
      fail_device("[launch] arguments must be of one device, but are of {} and {}", driver.device_name(*device),
                  driver.device_name(*found));
    device = found;
  }
  if (!device) fail_device("[launch] arguments must be of a device, but none is in memory");
  return driver.current_stream(*device);
}

}  // namespace

CurrentGuard::CurrentGuard(Driver& driver, Stream stream)
    : driver_(driver),
      stream_(stream),
      device_before_(driver.current_device()),
      stream_before_(driver.current_stream(stream.device)) {
  driver.make_current(stream);
}

CurrentGuard::CurrentGuard(Driver& driver, std::span<const void* const> arguments)
    : CurrentGuard(driver, stream_of_arguments(driver, arguments)) {}

CurrentGuard::~CurrentGuard() { driver_.restore(device_before_, stream_before_); }

}  // namespace weft::cuda
