// Models in several GGUF files.

#include "io/gguf_split.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "io/checkpoint.h"
#include "tests/base/temporary_folder.h"
#include "tests/io/gguf_bytes.h"
#include "tests/io/tiny_config.h"
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

using Names = std::vector<std::string>;

// Writes a tiny Llama with these tensors and returns its path. Each tensor has values of its own, which follow from its
// position in `all`. Of several parts, only the first has the metadata.
std::string write_model(const TemporaryFolder& folder, const std::string& name, const Names& all,
                        const std::vector<Names>& parts) {
  const auto path = [&](std::size_t part) {
    return parts.size() == 1 ? folder / (name + ".gguf")
                             : folder / fmt::format("{}-{:05}-of-{:05}.gguf", name, part + 1, parts.size());
  };
  for (std::size_t part = 0; part < parts.size(); ++part) {
    GgufBytes file = part == 0 ? testing::tiny_llama_gguf() : GgufBytes();
    if (parts.size() > 1)
      as_part(file, static_cast<int>(part), static_cast<int>(parts.size()), static_cast<int>(all.size()));
    for (const std::string& tensor : parts[part]) {
      const auto position = std::find(all.begin(), all.end(), tensor) - all.begin();
      const auto width = static_cast<std::uint64_t>(position + 2);  // so that shapes differ, too
      std::string values;
      for (std::uint64_t i = 0; i < width; ++i)
        values += raw(static_cast<float>(position * 100) + static_cast<float>(i));
      file.tensor(tensor, {width}, testing::kGgmlF32, values);
    }
    std::ofstream(path(part), std::ios::binary) << file.bytes();
  }
  return path(0);
}

// What the config of a Llama takes from the tensors of its file.
std::string read_from_tensors(const Checkpoint& checkpoint) {
  const ModelConfig config = checkpoint.config(tiny_config::facts_of("llama"));
  return fmt::format("tied {}, biases {}, merged {}, factors \"{}\", scaling {}", config.tie_word_embeddings,
                     config.attention_bias, config.merges_query_key_value, config.rope.frequency_factors,
                     rope_scaling_text(config.rope.scaling.type));
}

void expect_equal(const Checkpoint& split, const Checkpoint& whole) {
  EXPECT_EQ(read_from_tensors(split), read_from_tensors(whole));
  ASSERT_EQ(split.tensors().size(), whole.tensors().size());
  EXPECT_EQ(split.gguf().tensors().size(), whole.gguf().tensors().size());
  for (const TensorEntry& entry : whole.tensors()) {
    const Tensor& tensor = split.tensor(entry.name);
    ASSERT_EQ(tensor.meta, entry.tensor.meta) << entry.name;
    const auto bytes = static_cast<std::size_t>(tensor.meta.bytes().number());
    EXPECT_EQ(std::memcmp(tensor.data(), entry.tensor.data(), bytes), 0) << entry.name;
    // All other readers of a config find tensors by this call.
    const GgufTensor* found = split.gguf().find_tensor(entry.name);
    ASSERT_NE(found, nullptr) << entry.name;
    EXPECT_EQ(found->shape, whole.gguf().find_tensor(entry.name)->shape) << entry.name;
  }
  EXPECT_EQ(split.gguf().find_tensor("none"), nullptr);
}

// Expects that the whole model equals each of its splits in two parts, the first of which may have no tensor, and its
// split in one part per tensor. Returns what the whole model's config takes from the tensors.
std::string expect_equal_splits(const Names& all) {
  const TemporaryFolder folder;
  const Checkpoint whole = Checkpoint::open(write_model(folder, "whole", all, {all}));
  for (std::ptrdiff_t cut = 0; cut < std::ssize(all); ++cut) {
    SCOPED_TRACE(fmt::format("the first {} of {} tensors in part 1", cut, all.size()));
    const Names first(all.begin(), all.begin() + cut), second(all.begin() + cut, all.end());
    expect_equal(Checkpoint::open(write_model(folder, fmt::format("cut{}", cut), all, {first, second})), whole);
  }
  std::vector<Names> singles;
  for (const std::string& name : all) singles.push_back({name});
  expect_equal(Checkpoint::open(write_model(folder, "singles", all, singles)), whole);
  return read_from_tensors(whole);
}

TEST(GgufSplit, TensorsOfAnyPartDecideTheConfig) {
  EXPECT_EQ(expect_equal_splits({"token_embd.weight", "output_norm.weight"}),
            "tied true, biases false, merged false, factors \"\", scaling default");
  EXPECT_EQ(expect_equal_splits({"token_embd.weight", "output_norm.weight", "output.weight"}),
            "tied false, biases false, merged false, factors \"\", scaling default");
  EXPECT_EQ(expect_equal_splits({"token_embd.weight", "blk.0.attn_q.weight", "blk.0.attn_q.bias"}),
            "tied true, biases true, merged false, factors \"\", scaling default");
  EXPECT_EQ(expect_equal_splits({"token_embd.weight", "blk.0.attn_qkv.weight", "blk.0.attn_qkv.bias"}),
            "tied true, biases true, merged true, factors \"\", scaling default");
  EXPECT_EQ(expect_equal_splits({"token_embd.weight", "rope_freqs.weight", "output.weight"}),
            "tied false, biases false, merged false, factors \"rope_freqs.weight\", scaling default");
  EXPECT_EQ(expect_equal_splits({"token_embd.weight", "rope_factors_long.weight", "rope_factors_short.weight"}),
            "tied true, biases false, merged false, factors \"\", scaling longrope");
}

TEST(GgufSplit, OnePartIsAWholeFile) {
  const TemporaryFolder folder;
  GgufBytes file = testing::tiny_llama_gguf();
  std::ofstream(folder / "m.gguf", std::ios::binary) << with_number(as_part(file, 0, 1, 1), "a", 1).bytes();
  EXPECT_EQ(Checkpoint::open(folder / "m.gguf").tensors().size(), 1U);
}

}  // namespace weft::gguf_split_test
