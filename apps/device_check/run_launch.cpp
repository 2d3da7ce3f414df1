#include "apps/device_check/run_launch.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "runtime/cuda/current_guard.h"

namespace weft::device_check {

using namespace cuda;

namespace {

// Before and after each buffer; nothing may be written there.
constexpr std::size_t kGuard = 256;
constexpr std::byte kUntouched{0xa5};

// A buffer of the device between two guards.
class Placed {
 public:
  Placed(Target& target, const std::vector<std::byte>& before)
      : target_(target), stream_(target.stream()), bytes_(before.size() + 2 * kGuard, kUntouched) {
    std::copy(before.begin(), before.end(), bytes_.begin() + kGuard);
    const CurrentGuard guard(target.driver(), stream_);
    address_ = static_cast<std::byte*>(target.driver().allocate(stream_, bytes_.size()));
    target.driver().copy(stream_, address_, bytes_.data(), bytes_.size());
  }
  ~Placed() {
    if (address_ == nullptr) return;
    try {
      const CurrentGuard guard(target_.driver(), stream_);
      target_.driver().release(stream_, address_);
    } catch (const DeviceError&) {  // the device failed, and its memory with it
    }
  }
  Placed(Placed&& other) noexcept
      : target_(other.target_),
        stream_(other.stream_),
        bytes_(std::move(other.bytes_)),
        address_(std::exchange(other.address_, nullptr)) {}

  const std::byte* address() const { return address_ + kGuard; }
  // To be called before what is there now is asked for; the stream is to be waited for in between.
  void bring_back() {
    const CurrentGuard guard(target_.driver(), stream_);
    target_.driver().copy(stream_, bytes_.data(), address_, bytes_.size());
  }
  std::span<const std::byte> now() const { return std::span(bytes_).subspan(kGuard, bytes_.size() - 2 * kGuard); }
  bool is_guard_untouched() const {
    const auto is_untouched = [](std::byte byte) { return byte == kUntouched; };
    return std::all_of(bytes_.begin(), bytes_.begin() + kGuard, is_untouched) &&
           std::all_of(bytes_.end() - kGuard, bytes_.end(), is_untouched);
  }

 private:
  Target& target_;
  Stream stream_;
  std::vector<std::byte> bytes_;
  std::byte* address_ = nullptr;
};

void wait(Target& target) {
  const CurrentGuard guard(target.driver(), target.stream());
  target.driver().synchronize(target.stream());
}

// The launch's arguments, with the addresses of what is placed now in the place of those that it was recorded with.
std::vector<std::byte> arguments_of(const RecordedLaunch& launch, const std::vector<Placed>& placed,
                                    std::vector<const void*>& addresses) {
  std::vector<std::byte> arguments = launch.bytes;
  for (const RecordedPointer& pointer : launch.pointers) {
    addresses.push_back(placed[pointer.buffer].address() + pointer.offset);
    std::memcpy(arguments.data() + pointer.place, &addresses.back(), sizeof(void*));
  }
  return arguments;
}

std::string difference_of(const RecordedBuffer& recorded, const Placed& placed, Bound bound, DType input) {
  if (!placed.is_guard_untouched()) return recorded.name + ": bytes before or after it were written";
  if (!recorded.wanted.empty()) return difference_of(recorded, placed.now(), bound, input);
  const std::span<const std::byte> now = placed.now();
  return std::equal(now.begin(), now.end(), recorded.before.begin()) ? "" : recorded.name + " was written";
}

}  // namespace

std::string kernel_name(const RecordedLaunch& launch, Mathematics mathematics) {
  constexpr std::string_view kReference = "_reference";
  if (mathematics == Mathematics::reference || !launch.kernel.ends_with(kReference)) return launch.kernel;
  return launch.kernel.substr(0, launch.kernel.size() - kReference.size()) + "_device";
}

std::optional<std::string> run_launch(Target& target, const RecordedLaunch& launch, Mathematics mathematics) {
  const std::optional<Function> function = target.find(kernel_name(launch, mathematics), launch.bytes.size());
  if (!function) return std::nullopt;
  std::vector<Placed> placed;
  try {
    for (const RecordedBuffer& buffer : launch.buffers) placed.emplace_back(target, buffer.before);
    std::vector<const void*> addresses;
    const std::vector<std::byte> arguments = arguments_of(launch, placed, addresses);
    const LaunchSize size{.blocks = {launch.shape.blocks, launch.shape.block_rows, 1},
                          .threads = {launch.shape.threads, 1, 1}};
    {
      const CurrentGuard guard(target.driver(), addresses);
      target.driver().launch(guard.stream(), *function, size, arguments);
    }
    for (Placed& buffer : placed) buffer.bring_back();
    wait(target);
  } catch (const DeviceError&) {
    try {
      wait(target);                 // copies from and to what is placed may be under way
    } catch (const DeviceError&) {  // the same
    }
    throw;
  }
  const Bound exactly = mathematics == Mathematics::reference ? Bound::bits : Bound::last_places;
  const Bound bound = launch.is_approximate ? Bound::of_largest : exactly;
  for (std::size_t i = 0; i < placed.size(); ++i)
    if (std::string found = difference_of(launch.buffers[i], placed[i], bound, launch.input); !found.empty())
      return found;
  return "";
}

}  // namespace weft::device_check
