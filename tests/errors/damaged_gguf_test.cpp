// A GGUF file that is truncated, changed at one byte, or wrong in one fact.

#include <iostream>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/errors/tiny_files.h"

namespace weft::damaged_gguf_test {

using testing::GgufBytes;
using testing::raw;
using testing::raw_text;

class DamagedGguf : public ::testing::Test {
 protected:
  ProgramRun run(const std::string& bytes) const {
    write_bytes(folder_ / "m.gguf", bytes);
    return complete_with(folder_ / "m.gguf");
  }
  void expect_refused(const std::string& bytes, const std::string& part) const {
    EXPECT_EQ(breach_of_refusal(run(bytes), part), "");
  }
  // The file with `from`, which occurs once, replaced by a text of the same length.
  void expect_refused(const std::string& from, const std::string& to, const std::string& part) const {
    const std::size_t at = good_.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_EQ(good_.find(from, at + 1), std::string::npos) << from;
    ASSERT_EQ(from.size(), to.size());
    expect_refused(std::string(good_).replace(at, from.size(), to), part);
  }

  const TemporaryFolder folder_;
  const SampleCheckpoint sample_ = tiny_checkpoint();
  const GgufBytes file_ = sample_.gguf(DType::q8_0);
  const std::string good_ = file_.bytes();
};

TEST_F(DamagedGguf, IsWholeToBeginWith) {
  const ProgramRun whole = run(good_);
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(whole.err, "");
}

TEST_F(DamagedGguf, IsRefusedWhereverItIsCut) {
  DamageCount header, data;
  for (const std::size_t size : cuts(file_.header_size()))
    header.add(run(good_.substr(0, size)), fmt::format("{}", size));
  const std::size_t rest = good_.size() - file_.header_size();
  for (const std::size_t size : cuts(rest))
    data.add(run(good_.substr(0, file_.header_size() + size)), fmt::format("header and {}", size));
  header.print("cuts in the header");
  data.print("cuts in the data");
  EXPECT_EQ(header.refused(), 100);
  // The last tensor ends before the file does: the rest is padding for alignment.
  EXPECT_GE(data.refused(), 99);
}

TEST_F(DamagedGguf, IsRefusedOrStillWorksWithABitOfAnyByteOfItsHeaderFlipped) {
  constexpr std::size_t kMagicVersionAndCounts = 24;
  DamageCount flips;
  const auto flip = [&](std::size_t at, std::size_t bit) {
    std::string bytes = good_;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    flips.add(run(bytes), fmt::format("bit {} of byte {}", bit, at));
  };
  for (std::size_t at = 0; at < kMagicVersionAndCounts && !HasFailure(); ++at)
    for (std::size_t bit = 0; bit < 8; ++bit) flip(at, bit);
  for (std::size_t at = kMagicVersionAndCounts; at < file_.header_size() && !HasFailure(); at += kDamageStep)
    flip(at, at % 8);
  flips.print("flipped bits of the header");
  EXPECT_GE(static_cast<std::size_t>(flips.runs()), 7 * kMagicVersionAndCounts + file_.header_size() / kDamageStep);
  EXPECT_GT(flips.refused(), flips.runs() / 2);
}

TEST_F(DamagedGguf, IsRefusedWithAbsurdCounts) {
  const std::uint64_t counts[] = {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 40, 1'000'000};
  for (const std::uint64_t count : counts) {
    GgufBytes file = file_;
    file.tensor_count = count;
    expect_refused(file.bytes(), "m.gguf]");
    file = file_;
    file.entry_count = count;
    expect_refused(file.bytes(), "m.gguf]");
    file = file_;
    file.entry("x", testing::kArray, raw<std::uint32_t>(testing::kU8) + raw(count));
    expect_refused(file.bytes(), "m.gguf]");
    file = file_;
    file.entry("x", testing::kText, raw(count));
    expect_refused(file.bytes(), "m.gguf]");
  }
}

TEST_F(DamagedGguf, IsRefusedWithAbsurdTensors) {
  const std::uint64_t numbers[] = {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 62, 1 << 20};
  for (const std::uint64_t number : numbers) {
    for (const std::vector<std::uint64_t>& extents :
         {std::vector<std::uint64_t>{number}, {32, number}, {number, number}, {32, number, number}}) {
      GgufBytes file = file_;
      file.tensor_at("extra", extents, testing::kGgmlF32, 0);
      expect_refused(file.bytes(), "extra");
    }
    GgufBytes file = file_;
    file.tensor_at("extra", {32}, testing::kGgmlF32, number / 32 * 32);
    expect_refused(file.bytes(), "extra");
  }
  GgufBytes file = file_;
  file.tensor_at("extra", {}, testing::kGgmlF32, 0);
  file.tensor_at("more", {1, 1, 1, 1, 1, 1, 1, 1}, testing::kGgmlF32, 0);
  expect_refused(file.bytes(), "m.gguf]");
}

TEST_F(DamagedGguf, IsRefusedWithAbsurdFacts) {
  const auto key = [](const char* name) { return raw_text(name) + raw<std::uint32_t>(testing::kU32); };
  const std::pair<const char*, std::uint32_t> facts[] = {
      {"llama.block_count", 1},           {"llama.context_length", 32},       {"llama.embedding_length", 32},
      {"llama.feed_forward_length", 32},  {"llama.attention.head_count", 2},  {"llama.attention.head_count_kv", 1},
      {"llama.rope.dimension_count", 16}, {"llama.attention.key_length", 16}, {"llama.vocab_size", 9}};
  for (const auto& [name, value] : facts)
    for (const std::uint32_t wrong : {~std::uint32_t{0}, std::uint32_t{1} << 31})
      expect_refused(key(name) + raw(value), key(name) + raw(wrong), name);
}

TEST_F(DamagedGguf, IsRefusedWithWhatIsUnknown) {
  GgufBytes other;
  expect_refused(other.text("general.architecture", "rwkv7").bytes(), "rwkv7");
  expect_refused(raw_text("gpt2"), raw_text("gpt9"), "gpt9");
  expect_refused(raw_text("gpt-2"), raw_text("gpt-9"), "gpt-9");
  GgufBytes typed = file_;
  typed.tensor_at("extra", {32}, 999, 0);
  expect_refused(typed.bytes(), "999");
  GgufBytes valued = file_;
  valued.entry("x", 99, raw<std::uint32_t>(1));
  expect_refused(valued.bytes(), "99");
}

TEST_F(DamagedGguf, SaysOnceThatAnEndIsNoTokenAndRuns) {
  const std::string key = raw_text("tokenizer.ggml.eos_token_id") + raw<std::uint32_t>(testing::kU32);
  const std::size_t at = good_.find(key + raw(std::uint32_t{8}));
  ASSERT_NE(at, std::string::npos);
  std::string changed = good_;
  changed.replace(at, key.size() + 4, key + raw(~std::uint32_t{0}));
  const ProgramRun done = run(changed);
  EXPECT_EQ(done.status, 0) << done.err;
  const std::size_t said = done.err.find("eos_token_id 4294967295 is left out");
  EXPECT_NE(said, std::string::npos) << done.err;
  EXPECT_EQ(done.err.find("is left out", said + 40), std::string::npos) << done.err;
}

TEST_F(DamagedGguf, IsRefusedWithATemplateThatIsNotUnderstood) {
  const std::string messages = folder_ / "messages.json";
  write_bytes(messages, R"([{"role": "user", "content": "abc"}])");
  for (const char* text :
       {"{% frobnicate x %}", "{{ messages | sparkle }}", "{{ a b }}", "{% if %}", "{{ nothing() }}"}) {
    GgufBytes file = file_;
    file.text("tokenizer.chat_template", text);
    write_bytes(folder_ / "m.gguf", file.bytes());
    EXPECT_EQ(breach_of_refusal(run_weft({"template", folder_ / "m.gguf", "--messages", messages}), "template"), "")
        << text;
    EXPECT_EQ(breach_of_refusal(run_weft({"chat", folder_ / "m.gguf", "-t", "1"}, "abc\n"), "template"), "") << text;
  }
  write_bytes(folder_ / "m.gguf", good_);
  EXPECT_EQ(breach_of_refusal(run_weft({"chat", folder_ / "m.gguf"}, "abc\n"), "template"), "");
}

TEST_F(DamagedGguf, NamesATensorThatIsMissingOrMisshapen) {
  int tried = 0;
  for (const auto& [name, tensor] : sample_.weights()) {
    SampleCheckpoint changed = sample_;
    changed.erase(name);
    const std::string gguf_name = sample_.gguf_name(name);
    // Without a separate head the embedding is the head.
    if (gguf_name != "output.weight") expect_refused(changed.gguf(DType::f32).bytes(), gguf_name);
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{7}, {32, 7}, {7, 32}, {2, 32, 32}}) {
      changed = sample_;
      changed.reshape(name, shape);
      const ProgramRun run = this->run(changed.gguf(DType::f32).bytes());
      EXPECT_EQ(breach_of_refusal(run, "tensor " + gguf_name), "");
      EXPECT_NE(run.err.find(shape_text(tensor.meta.shape)), std::string::npos) << run.err;
      EXPECT_NE(run.err.find(shape_text(Shape(shape.begin(), shape.end()))), std::string::npos) << run.err;
      ++tried;
    }
  }
  std::cout << "misshapen tensors: " << tried << "\n";
}

}  // namespace weft::damaged_gguf_test
