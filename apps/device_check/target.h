#pragma once

// The device that is checked: a GPU with the code that the program carries, or a fake device whose kernels run in the
// emulator.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/driver.h"

namespace weft::device_check {

// The folder that the program lies in; what belongs to it lies there, too.
std::filesystem::path program_folder();

class Target {
 public:
  // The GPU of that number. DeviceError where there is no driver, no such device, or no code for it.
  static Target gpu(int device);
  // `seed`: of the order of its work. `device`: the one that is checked, the last of all.
  static Target fake(std::uint64_t seed, int device = 0, bool resets_mend_faults = true);

  bool is_fake() const { return is_fake_; }
  int device() const { return device_; }
  cuda::Driver& driver() { return *driver_; }
  // A stream of the device, made current; another one after the device was reset.
  cuda::Stream stream();
  // Nothing where the code has no kernel of that name.
  std::optional<cuda::Function> find(const std::string& kernel, std::size_t argument_bytes);
  // Code for another architecture alone: what a program has that was not built for this device. Nothing where it is not
  // there, and `wanted` says what is missing.
  std::optional<std::vector<std::byte>> foreign_code(std::string& wanted) const;
  // Makes the device usable where a kernel has failed; nothing to do otherwise. "" or why it is lost to this process.
  std::string mend();
  // Why the device is lost to this process; "" where it is not.
  std::string lost() { return driver_->last_error(device_); }

 private:
  Target(std::unique_ptr<cuda::Driver> driver, int device, bool is_fake)
      : driver_(std::move(driver)), device_(device), is_fake_(is_fake) {}
  void reset();
  cuda::Module module_of(const std::string& kernel);

  std::unique_ptr<cuda::Driver> driver_;
  int device_;
  bool is_fake_;
  std::optional<cuda::Stream> stream_;
  std::map<const std::byte*, cuda::Module> modules_;  // by image
  std::map<std::pair<std::string, std::size_t>, std::optional<cuda::Function>> functions_;
};

}  // namespace weft::device_check
