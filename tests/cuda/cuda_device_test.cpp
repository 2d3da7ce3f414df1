#include <gtest/gtest.h>

#include "tests/program_run.h"

namespace weft::cuda_device_test {

TEST(CudaDevice, IsRefusedWithTheReason) {
  for (const auto& [given, name] : {std::pair("cuda", "cuda:0"), {"cuda:1", "cuda:1"}}) {
    const ProgramRun run = run_weft({"info", "--device", given});
    EXPECT_EQ(run.status, 4) << run.err;
    EXPECT_NE(run.err.find(fmt::format("[--device] {}", name)), std::string::npos) << run.err;
  }
  EXPECT_EQ(breach_of_refusal(run_weft({"info", "--device", "fake-cuda:1"}), "one fake device, fake-cuda:0"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"info", "--device", "fake-cuda:"}), "fake-cuda:N"), "");
}

TEST(CudaDevice, IsTakenByTheNameThatInfoGivesIt) {
  const ProgramRun named = run_weft({"info", "--device", "fake-cuda:0"});
  EXPECT_EQ(named.status, 0) << named.err;
  EXPECT_NE(named.out.find("fake-cuda:0"), std::string::npos) << named.out;
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
  EXPECT_NE(cpu.out.find("runs on cuda and fake-cuda, and the device is cpu"), std::string::npos) << cpu.out;
}

}  // namespace weft::cuda_device_test
