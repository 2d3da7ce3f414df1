// An artifact of weft compile with the model inside, a file or a folder, that is truncated, or changed at one byte.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/errors/tiny_files.h"

namespace weft::damaged_artifact_test {

// For a model that is a folder, or not.
class DamagedArtifact : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::string model = GetParam() ? tiny_checkpoint().write_folder(folder_, "m", DType::bf16)
                                         : tiny_checkpoint().write_gguf(folder_, "m.gguf", DType::q8_0);
    const ProgramRun run =
        run_weft({"compile", model, "-o", path_, "-t", "1", "--max-num-batched-tokens", "8", "--with-weights"});
    ASSERT_EQ(run.status, 0) << run.err;
    good_ = read_bytes(path_);
    text_ = complete_with(path_).out;
    ASSERT_EQ(text_, complete_with(model).out);
  }
  ProgramRun run(const std::string& bytes) const {
    write_bytes(path_, bytes);
    const ProgramRun run = complete_with(path_);
    EXPECT_TRUE(run.status != 0 || run.out == text_) << run.out;
    return run;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.weft";
  std::string good_, text_;
};

TEST_P(DamagedArtifact, CutShortIsRefused) {
  DamageCount count;
  for (const std::size_t size : cuts(good_.size())) count.add(run(good_.substr(0, size)), fmt::format("{}", size));
  count.print("artifacts cut short");
  EXPECT_EQ(count.refused(), count.runs());
}

// Bits without a meaning, of the program that packed it or the rights of a member, and zeros before each file of the
// model may differ.
TEST_P(DamagedArtifact, OfOneChangedBitIsRefusedOrTheSame) {
  DamageCount count;
  constexpr std::size_t kStep = 7 * kDamageStep;
  for (std::size_t at = 0; at < good_.size(); at += kStep) {
    std::string bytes = good_;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    count.add(run(bytes), fmt::format("bit {} of byte {}", at % 8, at));
  }
  count.print("artifacts with a changed bit");
  const int files = GetParam() ? 3 : 1, zeros = files * 4096 / static_cast<int>(kStep);
  EXPECT_GT(count.refused(), (count.runs() - zeros) * 95 / 100);
}

INSTANTIATE_TEST_SUITE_P(Models, DamagedArtifact, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "OfAFolder" : "OfAFile"; });

}  // namespace weft::damaged_artifact_test
