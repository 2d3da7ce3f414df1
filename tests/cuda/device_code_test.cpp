// Device code inside the program, in builds with and without.

#include "kernels/cuda/code/device_code.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/cuda/emulator/kernel_table.h"
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

TEST(DeviceCode, NamesTheArchitectureThatItIsWithout) {
  const Verdict old = has_device_code(52);
  ASSERT_FALSE(old);
  EXPECT_NE(old.reason().find("no device code for sm_52; this program has " + device_code_text()), std::string::npos)
      << old.reason();
  for (const int architecture : device_code_architectures()) EXPECT_TRUE(has_device_code(architecture)) << architecture;
  if (device_code().empty()) return;
  EXPECT_TRUE(has_device_code(87));   // runs what is made for 8.6
  EXPECT_FALSE(has_device_code(75));  // and nothing older
  EXPECT_FALSE(has_device_code(110));
  EXPECT_TRUE(has_device_code(121));
  EXPECT_TRUE(has_device_code(130));  // compiles the PTX
}

TEST(DeviceCode, IsNamedByInfo) {
  const ProgramRun info = run_weft({"info"});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_NE(info.out.find(device_code_text()), std::string::npos) << info.out;
}

}  // namespace weft::device_code_test
