// Device code inside the program, in builds with and without; tools/check_device_code.py runs these with.

#include "kernels/cuda/code/device_code.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/code/kernel_table.h"
#include "tests/program_run.h"
#include "tests/thrown_message.h"

namespace weft::device_code_test {

using namespace cuda;

TEST(DeviceCode, IsThereForEveryKernelOrForNone) {
  EXPECT_EQ(device_code().empty(), device_code_architectures().empty());
  for (const std::span<const EmulatedKernel> file : emulated_kernels()) {
    for (const EmulatedKernel& kernel : file) {
      if (device_code().empty()) {
        EXPECT_NE(message_of([&] { device_code_of(kernel.name); }).find("without -DWEFT_CUDA=ON"), std::string::npos);
        continue;
      }
      // A fatbin, which begins with its own word.
      const std::span<const std::byte> image = device_code_of(kernel.name);
      std::uint32_t word = 0;
      ASSERT_GT(image.size(), sizeof word);
      std::memcpy(&word, image.data(), sizeof word);
      EXPECT_EQ(word, 0xba55ed50u) << kernel.name;
    }
  }
}

template <class T>
T number_at(std::span<const std::byte> image, std::size_t at) {
  T number{};
  if (at + sizeof number <= image.size()) std::memcpy(&number, image.data() + at, sizeof number);
  return number;
}

// The parts of a fatbin, in order. After a header of 16 bytes, each part has its kind, the length of its header, the
// length of its data and, at byte 28, the architecture.
struct Parts {
  std::vector<int> machine_code, ptx;
};
Parts parts_of(std::span<const std::byte> image) {
  constexpr std::size_t kHead = 16;
  Parts parts;
  for (std::size_t at = kHead; at + 32 <= image.size();) {
    const bool is_ptx = number_at<std::uint16_t>(image, at) == 1;
    (is_ptx ? parts.ptx : parts.machine_code).push_back(static_cast<int>(number_at<std::uint32_t>(image, at + 28)));
    at += number_at<std::uint32_t>(image, at + 4) + number_at<std::uint64_t>(image, at + 8);
  }
  return parts;
}

TEST(DeviceCode, IsMadeForTheArchitecturesThatItNames) {
  if (device_code().empty()) GTEST_SKIP() << device_code_text();
  const std::vector<int> named(device_code_architectures().begin(), device_code_architectures().end());
  for (const DeviceCode& code : device_code()) {
    const Parts parts = parts_of(code.image);
    EXPECT_EQ(parts.machine_code, named) << code.file;
    EXPECT_EQ(parts.ptx, std::vector<int>{named.back()}) << code.file;
  }
}

TEST(DeviceCode, NamesTheArchitectureThatItIsWithout) {
  const Verdict old = has_device_code(52);
  ASSERT_FALSE(old);
  EXPECT_NE(old.reason().find("no device code for sm_52; this program has " + device_code_text()), std::string::npos)
      << old.reason();
  for (const int architecture : device_code_architectures()) EXPECT_TRUE(has_device_code(architecture)) << architecture;
  if (device_code().empty()) return;
  EXPECT_TRUE(has_device_code(87));   // runs the code for 8.6
  EXPECT_FALSE(has_device_code(75));  // and nothing older
  EXPECT_FALSE(has_device_code(110));
  EXPECT_TRUE(has_device_code(121));
  EXPECT_TRUE(has_device_code(130));  // compiles the PTX
}

TEST(DeviceCode, AsksForADriverThatReadsIt) {
  const Verdict old = driver_reads_device_code(12030, true);
  ASSERT_FALSE(old);
  EXPECT_NE(old.reason().find("must be for CUDA 12.4 or newer"), std::string::npos) << old.reason();
  EXPECT_NE(old.reason().find("but is for 12.3"), std::string::npos) << old.reason();
  EXPECT_TRUE(driver_reads_device_code(12040, true));
  EXPECT_TRUE(driver_reads_device_code(13000, true));
  EXPECT_TRUE(driver_reads_device_code(0, true));       // a fake device's
  EXPECT_TRUE(driver_reads_device_code(12000, false));  // only PTX of NVRTC
  EXPECT_EQ(bool(driver_reads_device_code(12030)), device_code().empty());
}

TEST(DeviceCode, IsNamedByInfo) {
  const ProgramRun info = run_weft({"info"});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_NE(info.out.find(device_code_text()), std::string::npos) << info.out;
}

}  // namespace weft::device_code_test
