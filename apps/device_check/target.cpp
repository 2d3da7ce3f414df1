#include "apps/device_check/target.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/files.h"
#include "builtin/emulated_kernels.h"
#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/code/kernel_table.h"
#include "runtime/cuda/driver_library.h"

namespace weft::device_check {

using namespace cuda;

namespace {

// Of PTX what a driver refuses it for, its version and architecture; nothing here would run it.
FakeImage read_ptx_head(std::span<const std::byte> image) {
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  const auto number_behind = [&](std::string_view word) {
    const std::size_t at = text.find(word);
    if (at == std::string_view::npos) fail_user("the image has no {}", word);
    int number = 0;
    for (std::size_t i = at + word.size(); i < std::min(text.size(), at + word.size() + 8); ++i) {
      if (text[i] == '.') continue;
      if (text[i] < '0' || text[i] > '9') break;
      number = 10 * number + (text[i] - '0');
    }
    return number;
  };
  return {.architecture = number_behind(".target sm_"),
          .ptx_version = number_behind(".version "),
          .kernels = {{.name = "unknown"}}};
}

}  // namespace

std::filesystem::path program_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

Target Target::gpu(int device) {
  std::string problem;
  std::unique_ptr<Driver> driver = open_cuda(problem);
  if (driver == nullptr) fail_device("[device check] wanted a CUDA device, but {}", problem);
  const int capability = driver->facts(device).compute_capability;
  if (const Verdict verdict = has_device_code(capability); !verdict)
    fail_device("[{}] {}", driver->device_name(device), verdict.reason());
  return {std::move(driver), device, false};
}

Target Target::fake(std::uint64_t seed, int device, bool resets_mend_faults) {
  FakeSettings settings{.devices = device + 1,
                        .seed = seed,
                        .driver_version = 13000,
                        .memory_bytes = std::size_t{1} << 26,
                        .resets_mend_faults = resets_mend_faults,
                        .kernels = emulated_kernels_of_device({.order = ThreadOrder::random}),
                        .read_image = read_ptx_head};
  return {open_fake_device(std::move(settings)), device, true};
}

Stream Target::stream() {
  if (!stream_) {
    stream_ = driver_->create_stream(device_);
    driver_->make_current(*stream_);
  }
  return *stream_;
}

Module Target::module_of(const std::string& kernel) {
  const std::vector<std::byte> fake = is_fake_ ? fake_image({90}) : std::vector<std::byte>{};
  const std::span<const std::byte> image = is_fake_ ? std::span<const std::byte>(fake) : device_code_of(kernel);
  const std::byte* key = is_fake_ ? nullptr : image.data();
  const auto found = modules_.find(key);
  if (found != modules_.end()) return found->second;
  return modules_.emplace(key, driver_->load_module(device_, image)).first->second;
}

std::optional<Function> Target::find(const std::string& kernel, std::size_t argument_bytes) {
  const std::pair key(kernel, argument_bytes);
  if (const auto known = functions_.find(key); known != functions_.end()) return known->second;
  std::optional<Function> found;
  if (find_emulated_kernel(kernel) != nullptr)
    found = driver_->find_function(module_of(kernel), kernel, argument_bytes);
  functions_[key] = found;
  return found;
}

std::optional<std::vector<std::byte>> Target::foreign_code(std::string& wanted) const {
  if (is_fake_) return fake_image({80});
  // Machine code of one major number runs on no device of another.
  const int other = driver_->facts(device_).compute_capability / 10 == 8 ? 120 : 80;
  const std::filesystem::path path = program_folder() / fmt::format("only_sm_{}.fatbin", other);
  wanted = path.string();
  if (!std::filesystem::exists(path)) return std::nullopt;
  const MappedFile file(wanted);
  return std::vector<std::byte>(file.bytes().begin(), file.bytes().end());
}

void Target::reset() {
  modules_.clear();
  functions_.clear();
  stream_.reset();
  driver_->reset(device_);
}

std::string Target::mend() {
  if (driver_->last_error(device_).empty()) return "";
  try {
    reset();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

}  // namespace weft::device_check
