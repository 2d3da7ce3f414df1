#pragma once

// Devices that are not there. What they are given they do on the host: late, in a random order that streams and events
// allow and nothing else decides, so that a dependency that nobody stated shows as a wrong result for some seed. They
// refuse what the driver refuses, above all in captures, and hold memory to its bounds and its time
// (runtime/cuda/fake_memory.h). Where the driver's behaviour is not promised they are the stricter.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"

namespace weft::cuda {

class FakeMemory;

// A kernel's run on the host. What it throws is a fault of the kernel and breaks the device.
class FakeLaunch {
 public:
  FakeLaunch(int device, const LaunchSize& size, std::span<const std::byte> arguments, const FakeMemory& memory)
      : device_(device), size_(size), arguments_(arguments), memory_(memory) {}

  const LaunchSize& size() const { return size_; }
  template <class Arguments>
  const Arguments& arguments() const {
    return *reinterpret_cast<const Arguments*>(arguments_.data());
  }
  // `count` elements from `first` on, which must be memory of the device that is allocated now. A kernel that takes its
  // pointers as they are runs too; what it reads wrongly is then garbage and no error.
  template <class T>
  std::span<T> elements(T* first, std::size_t count) const {
    check(first, count * sizeof(T));
    return {first, count};
  }
  // All memory that the kernel may use.
  std::vector<std::span<std::byte>> allocations() const;

 private:
  void check(const void* first, std::size_t bytes) const;

  int device_;
  const LaunchSize& size_;
  std::span<const std::byte> arguments_;
  const FakeMemory& memory_;
};

struct FakeKernel {
  std::string name;
  std::size_t argument_bytes = 0;
  // Calls nothing of the driver.
  std::function<void(const FakeLaunch&)> run;
  std::uint32_t threads_per_block = 1024;  // at most
};

// What some compiler made for an architecture: PTX, which newer devices take as well, or machine code, which those of
// the same major number take. Code for sm_100f is for those of the same major number, too, and code for sm_90a for
// devices of 9.0 alone.
struct FakeImage {
  int architecture = 0;  // 90 for sm_90
  bool is_ptx = true;
  char suffix = 0;                       // 'a' of sm_90a, 'f' of sm_100f
  int ptx_version = 0;                   // 85 for PTX 8.5; 0: one that every driver knows
  std::vector<FakeKernel> kernels = {};  // none: it is no image
};
// What it throws says what is wrong with an image.
using ReadImage = std::function<FakeImage(std::span<const std::byte> image)>;

struct FakeSettings {
  int devices = 1;
  std::uint64_t seed = 1;  // of the order
  int compute_capability = 90;
  int multiprocessors = 132;
  int driver_version = 0;                           // DeviceFacts; 0: it knows all PTX
  std::size_t memory_bytes = std::size_t{1} << 30;  // of each device
  std::size_t node_bytes = 0;                       // of the device, for each node of an executable graph
  std::size_t uploaded_node_bytes = 0;              // more, once it was uploaded or launched
  // Of every device, outside the driver's calls, as a GPU's is: what reads or writes it there, or in a host function,
  // ends the process with SIGSEGV.
  bool hides_memory = false;
  bool resets_mend_faults = true;  // else a device whose kernel failed stays broken, as with driver 580
  // Tests leave these out to show what they alone see (tests/without_check.h).
  bool is_late = true;                   // work is done late and in random order, not at once
  bool checks_captures = true;           // what captures forbid is refused, and not passed over doing nothing
  std::vector<FakeKernel> kernels = {};  // that modules of fake_image define
  ReadImage read_image = {};             // what executes other images; all are refused where it is null
};

std::unique_ptr<Driver> open_fake_device(FakeSettings settings);

// An image with the kernels, as if compiled for these compute capabilities and no other.
std::vector<std::byte> fake_image(const std::vector<int>& compute_capabilities);

}  // namespace weft::cuda
