#pragma once

// Emulated devices. They run queued work on the host: late, and in a random order that only streams and events
// constrain, so that a missing dependency gives a wrong result for some seed. They refuse what the driver refuses,
// above all in captures, and check the bounds and lifetimes of memory (runtime/cuda/fake_memory.h). Where the driver
// does not specify a behaviour, they are stricter.

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

// A kernel's run on the host. An exception in it is a fault of the kernel and breaks the device.
class FakeLaunch {
 public:
  FakeLaunch(int device, const LaunchSize& size, std::span<const std::byte> arguments, const FakeMemory& memory)
      : device_(device), size_(size), arguments_(arguments), memory_(memory) {}

  const LaunchSize& size() const { return size_; }
  template <class Arguments>
  const Arguments& arguments() const {
    return *reinterpret_cast<const Arguments*>(arguments_.data());
  }
  // `count` elements from `first` on, which must be device memory that is allocated now. A kernel may also use its
  // pointers directly; wrong reads then give garbage instead of an error.
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
  // Must not call the driver.
  std::function<void(const FakeLaunch&)> run;
  std::uint32_t threads_per_block = 1024;  // at most
};

// An image that a compiler made for an architecture: PTX, which newer devices also run, or machine code, which devices
// of the same major number run. Code for sm_100f runs on devices of the same major number, and code for sm_90a only on
// devices of 9.0.
struct FakeImage {
  int architecture = 0;  // 90 for sm_90
  bool is_ptx = true;
  char suffix = 0;                       // 'a' of sm_90a, 'f' of sm_100f
  int ptx_version = 0;                   // 85 for PTX 8.5; 0: a version that every driver supports
  std::vector<FakeKernel> kernels = {};  // empty: the bytes are no image
};
// The exception's message says what is wrong with the image.
using ReadImage = std::function<FakeImage(std::span<const std::byte> image)>;

struct FakeSettings {
  int devices = 1;
  std::uint64_t seed = 1;  // of the random order
  int compute_capability = 90;
  int multiprocessors = 132;
  int driver_version = 0;                           // as in DeviceFacts; 0: supports all PTX
  std::size_t memory_bytes = std::size_t{1} << 30;  // of each device
  std::size_t node_bytes = 0;                       // device memory for each node of an executable graph
  std::size_t uploaded_node_bytes = 0;              // additional bytes once it was uploaded or launched
  // Makes device memory inaccessible outside the driver's calls, as a GPU's is: code that reads or writes it there, or
  // in a host function, ends the process with SIGSEGV.
  bool hides_memory = false;
  bool resets_mend_faults = true;  // false: a device whose kernel failed stays broken, as with driver 580
  // Tests disable these checks to show what only they detect (tests/without_check.h).
  bool is_late = true;                   // work runs late and in random order, not at once
  bool checks_captures = true;           // calls that captures forbid are refused, not ignored
  std::vector<FakeKernel> kernels = {};  // defined by modules of fake_image
  ReadImage read_image = {};             // reads other images; null: they are refused
};

std::unique_ptr<Driver> open_fake_device(FakeSettings settings);

// An image with the settings' kernels, as if compiled for exactly these compute capabilities.
std::vector<std::byte> fake_image(const std::vector<int>& compute_capabilities);

}  // namespace weft::cuda
