// Models in several GGUF files.

#include "io/gguf_split.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "io/checkpoint.h"
#include "tests/base/temporary_folder.h"
#include "tests/io/gguf_bytes.h"
#include "tests/thrown_message.h"

namespace weft::gguf_split_test {

using testing::GgufBytes;
using testing::raw;

GgufBytes& as_part(GgufBytes& file, int index, int count, int tensors = 3) {
  return file.entry("split.no", testing::kU16, raw(static_cast<std::uint16_t>(index)))
      .entry("split.count", testing::kU16, raw(static_cast<std::uint16_t>(count)))
      .entry("split.tensors.count", testing::kI32, raw(static_cast<std::int32_t>(tensors)));
}

GgufBytes& with_number(GgufBytes& file, const std::string& name, float value) {
  return file.tensor(name, {1}, testing::kGgmlF32, raw(value));
}

class SplitGguf : public ::testing::Test {
 public:
  SplitGguf() {
    GgufBytes first = testing::tiny_llama_gguf(), second, third;
    write(1, with_number(as_part(first, 0, 3), "a", 1));
    write(2, with_number(as_part(second, 1, 3), "b", 2));
    write(3, with_number(as_part(third, 2, 3), "c", 3));
  }
  std::string path(int part) const { return folder_ / ("m-0000" + std::to_string(part) + "-of-00003.gguf"); }
  void write(int part, const GgufBytes& file) const { std::ofstream(path(part), std::ios::binary) << file.bytes(); }
  void expect_refused(std::string_view words, int part = 1) const {
    const std::string message = message_of([&] { Checkpoint::open(path(part)); });
    EXPECT_NE(message.find(words), std::string::npos) << "wanted: " << words << "\n  came: " << message;
  }

 protected:
  TemporaryFolder folder_;
};

TEST_F(SplitGguf, IsOneModelByTheNameOfAnyPart) {
  std::vector<CheckpointFile> files;
  for (int part = 1; part <= 3; ++part) {
    const Checkpoint checkpoint = Checkpoint::open(path(part));
    EXPECT_EQ(checkpoint.config({}).hidden_size, 64);
    ASSERT_EQ(checkpoint.tensors().size(), 3U);
    EXPECT_EQ(*checkpoint.tensor("c").as<float>(), 3);
    EXPECT_EQ(checkpoint.find("b")->file, path(2));
    EXPECT_EQ(checkpoint.all_files().size(), 3U);
    if (part == 1) files = checkpoint.files();
    EXPECT_EQ(checkpoint.files(), files);
  }
  EXPECT_EQ(files[1].name, "m-00002-of-00003.gguf");
}

TEST_F(SplitGguf, NamesAPartThatIsMissing) {
  std::filesystem::remove(path(2));
  expect_refused("wanted part 2 of 3, m-00002-of-00003.gguf, but it is not there");
  expect_refused("wanted part 2 of 3", 3);
}

TEST_F(SplitGguf, RefusesPartsThatAreNotThoseOfOneModel) {
  GgufBytes swapped, of_other, twice, last;
  write(2, with_number(as_part(swapped, 2, 3), "b", 2));
  expect_refused("m-00002-of-00003.gguf] wanted part 2 of 3, but it is part 3 of 3");
  write(2, with_number(as_part(of_other, 1, 4), "b", 2));
  expect_refused("wanted part 2 of 3, but it is part 2 of 4");
  write(2, with_number(as_part(twice, 1, 3), "a", 2));
  expect_refused("tensor a is also in");
  write(2, as_part(last, 1, 3));
  expect_refused("split.tensors.count wants 3 tensors in all parts, but there are 2");
}

TEST_F(SplitGguf, RefusesNamesAndKeysThatNameNoParts) {
  std::filesystem::rename(path(1), folder_ / "renamed.gguf");
  const auto message = message_of([&] { Checkpoint::open(folder_ / "renamed.gguf"); });
  EXPECT_NE(message.find("must end in -00001-of-00003.gguf"), std::string::npos) << message;
  GgufBytes beyond = testing::tiny_llama_gguf(), too_many = testing::tiny_llama_gguf();
  write(1, as_part(beyond, 3, 3));
  expect_refused("split.no must be from 0 to 2, but is 3");
  too_many.u32("split.count", 100000);
  write(1, too_many);
  expect_refused("split.count must be at most 99999");
}

TEST(GgufSplit, OnePartIsAWholeFile) {
  const TemporaryFolder folder;
  GgufBytes file = testing::tiny_llama_gguf();
  std::ofstream(folder / "m.gguf", std::ios::binary) << with_number(as_part(file, 0, 1, 1), "a", 1).bytes();
  EXPECT_EQ(Checkpoint::open(folder / "m.gguf").tensors().size(), 1U);
}

}  // namespace weft::gguf_split_test
