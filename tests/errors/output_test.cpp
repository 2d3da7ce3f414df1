// Results that cannot be written: an existing file is kept, and no partial file is left.

#include <filesystem>
#include <iostream>

#include <gtest/gtest.h>

#include "apps/cli/tensor_file.h"
#include "base/error.h"
#include "base/files.h"
#include "io/safetensors_writer.h"
#include "tests/base/failing_file_system.h"
#include "tests/errors/tiny_files.h"
#include "tests/test_context.h"

namespace weft::output_test {

class Output : public ::testing::Test {
 protected:
  Output() {
    Tensor x = Tensor::empty(Meta::tensor(DType::f32, {3, 8}));
    for (int i = 0; i < 24; ++i) x.as<float>()[i] = static_cast<float>(i);
    write_results(folder_ / "in", {{"x", x}});
    write_bytes(folder_ / "g.graph", "graph g(%x: f32[s0, 8]) stage=traced {\n  %y = abs(%x)\n  return %y\n}\n");
    write_bytes(folder_ / "old", "old");
  }
  // The verbs that write a file, each to `path`.
  std::vector<ProgramRun> write_to(const std::string& path) const {
    return {run_weft({"op", "silu_and_mul", "--in", folder_ / "in", "--out", path, "--json"}),
            run_weft({"graph", "run", folder_ / "g.graph", "--in", folder_ / "in", "--out", path, "--json"})};
  }

  const TemporaryFolder folder_;
};

TEST_F(Output, ThatCannotBeMadeIsRefused) {
  const std::size_t before = folder_.names().size();
  for (const std::string& path : {std::string("/nonexistent/x"), folder_.path(), folder_ / "old/x", std::string(),
                                  folder_ / std::string(300, 'x'), std::string("/proc/x")})
    for (const ProgramRun& run : write_to(path)) EXPECT_EQ(breach_of_refusal(run), "") << path;
  EXPECT_EQ(folder_.names().size(), before);
  EXPECT_EQ(read_bytes(folder_ / "old"), "old");
}

TEST_F(Output, ToAFullDiskIsRefused) {
  for (const ProgramRun& run : write_to("/dev/full")) {
    EXPECT_EQ(breach_of_refusal(run), "");
    EXPECT_TRUE(run.err.starts_with("weft: [\"/dev/full\"] cannot write")) << run.err;
  }
}

TEST_F(Output, IsWholeOrNotThereWhateverCallFails) {
  const std::size_t before = folder_.names().size();
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {300, 8}));
  const NamedTensor item{"x", x};
  const std::vector<std::byte> bytes = encode_safetensors({&item, 1});
  int failing = 1;
  for (;; ++failing) {
    FailingFileSystem system(failing, ENOSPC);
    system.limit_transfers(1000);
    try {
      write_then_rename(folder_ / "old", bytes, system);
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("old"), std::string::npos);
    }
    EXPECT_EQ(folder_.names().size(), before);
    if (!system.has_failed()) break;
    EXPECT_EQ(read_bytes(folder_ / "old"), "old") << "call " << failing;
  }
  EXPECT_EQ(read_bytes(folder_ / "old").size(), bytes.size());
  EXPECT_GT(failing, 10);
  std::cout << "failing calls: " << failing - 1 << "\n";
}

TEST_F(Output, OverAnOldFileReplacesIt) {
  for (const ProgramRun& run : write_to(folder_ / "old")) EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(TensorFile(folder_ / "old").names(), std::vector<std::string>{"y"});
}

TEST_F(Output, OfDumpsIntoAFolderThatCannotBeMadeIsRefused) {
  for (const char* path : {"/proc/x", "/dev/null/x"})
    EXPECT_EQ(breach_of_refusal(run_weft({"graph", "opt", folder_ / "g.graph", "--debug-dump-path", path})), "");
  const std::string made = folder_ / "new/folder";
  EXPECT_EQ(run_weft({"graph", "opt", folder_ / "g.graph"}, "", {{"WEFT_DEBUG_DUMP_PATH", made}}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(made + "/" + dump_prefix("lower") + "g.1-512.graph"));
}

}  // namespace weft::output_test
