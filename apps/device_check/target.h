#pragma once

// The checked device: a GPU with the code that the program contains, or a fake device whose kernels run in the
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

// Returns the folder of the program. The program's files are in the same folder.
std::filesystem::path program_folder();

class Target {
 public:
  // Opens the GPU with that index. Throws DeviceError if there is no driver, no such device, or no code for it.
  static Target gpu(int device);
  // `seed` determines the order of the device's work. `device` is the index of the checked device, which is the last
  // one.
  static Target fake(std::uint64_t seed, int device = 0, bool resets_mend_faults = true);

  bool is_fake() const { return is_fake_; }
  int device() const { return device_; }
  cuda::Driver& driver() { return *driver_; }
  // Returns a stream of the device and makes it current. After a reset of the device it returns a new stream.
  cuda::Stream stream();
  // Returns nothing if the code has no kernel of that name.
  std::optional<cuda::Function> find(const std::string& kernel, std::size_t argument_bytes);
  // Returns code for another architecture only, as in a program that was not built for this device. If there is none,
  // returns nothing and sets `wanted` to the missing item.
  std::optional<std::vector<std::byte>> foreign_code(std::string& wanted) const;
  // Makes the device usable after a failed kernel; otherwise does nothing. Returns "", or the reason if this process
  // can no longer use the device.
  std::string mend();
  // Returns the reason if this process can no longer use the device, else "".
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
