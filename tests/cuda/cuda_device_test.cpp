#include <gtest/gtest.h>

#include "tests/program_run.h"

namespace weft::cuda_device_test {

TEST(CudaDevice, IsRefusedWhereNoKernelWouldRunOnIt) {
  EXPECT_EQ(breach_of_refusal(run_weft({"info", "--device", "cuda"}), "must be cpu or fake-cuda"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"info", "--device", "cuda:1"}), "but is cuda:1"), "");
}

TEST(CudaDevice, IsNamedByInfoWithItsKernels) {
  const ProgramRun fake = run_weft({"info", "--device", "fake-cuda"});
  EXPECT_EQ(fake.status, 0) << fake.err;
  EXPECT_NE(fake.out.find("fake-cuda:0"), std::string::npos) << fake.out;
  const std::size_t provider = fake.out.find("provider        cuda ");
  ASSERT_NE(provider, std::string::npos) << fake.out;
  const std::string line = fake.out.substr(provider, fake.out.find('\n', provider) - provider);
  EXPECT_NE(line.find(" 0 refused"), std::string::npos) << line;
  const ProgramRun cpu = run_weft({"info"});
  EXPECT_NE(cpu.out.find("runs on fake-cuda, and the device is cpu"), std::string::npos) << cpu.out;
}

}  // namespace weft::cuda_device_test
