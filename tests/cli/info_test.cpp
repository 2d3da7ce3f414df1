#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/cuda/driver_library.h"
#include "tests/program_run.h"

namespace weft::info_test {

TEST(Info, ListsCudaDevicesOrSaysWhyThereAreNone) {
  std::string problem;
  const auto driver = cuda::open_cuda(problem);
  const ProgramRun text = run_weft({"info"});
  const ProgramRun json = run_weft({"info", "--json"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(json.status, 0) << json.err;
  const nlohmann::json cuda = nlohmann::json::parse(json.out)["cuda"];
  if (driver == nullptr) {
    EXPECT_NE(problem, "");
    EXPECT_EQ(cuda["reason"], problem);
    EXPECT_EQ(cuda["devices"], nlohmann::json::array());
    EXPECT_NE(text.out.find("no CUDA device: " + problem + "\n"), std::string::npos) << text.out;
    return;
  }
  EXPECT_FALSE(cuda.contains("reason"));
  ASSERT_EQ(cuda["devices"].size(), static_cast<std::size_t>(driver->device_count()));
  EXPECT_EQ(cuda["devices"][0]["name"], driver->facts(0).name);
  EXPECT_NE(text.out.find("cuda:0: " + driver->facts(0).name), std::string::npos) << text.out;
}

}  // namespace weft::info_test
