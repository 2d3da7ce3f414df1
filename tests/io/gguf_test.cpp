#include "io/gguf.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/io/gguf_bytes.h"
#include "tests/thrown_message.h"

namespace weft::gguf_test {

using namespace weft::testing;

Gguf parse(const std::string& bytes) { return Gguf::parse(as_bytes(bytes), "model.gguf"); }

// The message of the UserError for these bytes, "" if they are accepted.
std::string refusal(const std::string& bytes) {
  return message_of([&] { parse(bytes); });
}

void expect_refused(const std::string& bytes, std::string_view words) {
  const auto message = refusal(bytes);
  EXPECT_TRUE(message.starts_with("[model.gguf] ")) << message;
  EXPECT_NE(message.find(words), std::string::npos) << "wanted: " << words << "\n  came: " << message;
}

GgufBytes small_file() {
  GgufBytes file;
  file.text("general.architecture", "llama")
      .u32("general.alignment", 32)
      .entry("a.u8", kU8, raw<std::uint8_t>(200))
      .entry("a.i8", kI8, raw<std::int8_t>(-5))
      .entry("a.u16", kU16, raw<std::uint16_t>(60000))
      .entry("a.i16", kI16, raw<std::int16_t>(-30000))
      .entry("a.i32", kI32, raw<std::int32_t>(-7))
      .entry("a.u64", kU64, raw<std::uint64_t>(1ULL << 40))
      .entry("a.i64", kI64, raw<std::int64_t>(-(1LL << 40)))
      .entry("a.f64", kF64, raw(0.1))
      .f32("a.f32", 0.5F)
      .boolean("a.yes", true)
      .boolean("a.no", false)
      .texts("a.words", {"", "two", "\xC4\xA0the"})
      .i32s("a.numbers", {3, -1, 4});
  file.tensor("norm", {3}, kGgmlF32, std::string(12, 'n'));
  file.tensor("weight", {64, 2, 3}, kGgmlQ4_1, std::string(12 * 20, 'w'));
  return file;
}

TEST(Gguf, ReadsEveryKindOfValue) {
  const auto bytes = small_file().bytes();
  const auto gguf = parse(bytes);
  EXPECT_EQ(gguf.version(), 3U);
  EXPECT_EQ(gguf.alignment(), 32);
  EXPECT_EQ(gguf.entries().size(), 15U);
  EXPECT_EQ(gguf.text("general.architecture"), "llama");
  EXPECT_EQ(gguf.integer("a.u8"), 200);
  EXPECT_EQ(gguf.integer("a.i8"), -5);
  EXPECT_EQ(gguf.integer("a.u16"), 60000);
  EXPECT_EQ(gguf.integer("a.i16"), -30000);
  EXPECT_EQ(gguf.integer("a.i32"), -7);
  EXPECT_EQ(gguf.integer("a.u64"), 1LL << 40);
  EXPECT_EQ(gguf.integer("a.i64"), -(1LL << 40));
  EXPECT_EQ(gguf.real("a.f64"), 0.1);
  EXPECT_EQ(gguf.real("a.f32"), 0.5);
  EXPECT_EQ(gguf.real("a.u8"), 200.0);
  EXPECT_EQ(gguf.find_boolean("a.yes"), true);
  EXPECT_EQ(gguf.find_boolean("a.no"), false);
  EXPECT_EQ(gguf.find_texts("a.words"), (std::vector<std::string_view>{"", "two", "\xC4\xA0the"}));
  EXPECT_EQ(gguf.find_integers("a.numbers"), (std::vector<std::int64_t>{3, -1, 4}));
  EXPECT_EQ(gguf.find_reals("a.numbers"), (std::vector<double>{3, -1, 4}));
  EXPECT_EQ(gguf.find("a.numbers")->type_name(), "array of 3 i32");
}

TEST(Gguf, ReadsVersionTwo) {
  auto file = small_file();
  file.version = 2;
  EXPECT_EQ(parse(file.bytes()).version(), 2U);
}

TEST(Gguf, GivesRowMajorShapesAndPlacesInTheFile) {
  const auto file = small_file();
  const auto bytes = file.bytes();
  const auto gguf = parse(bytes);
  ASSERT_EQ(gguf.tensors().size(), 2U);
  const auto* weight = gguf.find_tensor("weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->dtype, DType::q4_1);
  EXPECT_EQ(weight->shape, (std::vector<std::int64_t>{3, 2, 64}));
  EXPECT_EQ(weight->bytes, 12 * 20);
  EXPECT_EQ(bytes.substr(weight->offset, weight->bytes), std::string(12 * 20, 'w'));
  const auto* norm = gguf.find_tensor("norm");
  EXPECT_EQ(bytes.substr(norm->offset, norm->bytes), std::string(12, 'n'));
  EXPECT_EQ(gguf.find_tensor("nor"), nullptr);
}

TEST(Gguf, NamesKeyAndTypeWhereAValueIsOfAnotherKind) {
  const auto bytes = small_file().bytes();
  const auto gguf = parse(bytes);
  EXPECT_EQ(message_of([&] { gguf.integer("a.none"); }),
            "[model.gguf] wanted the key a.none, an integer, but there is none");
  EXPECT_EQ(message_of([&] { gguf.integer("a.f32"); }), "[model.gguf] key a.f32 must hold integers, but is f32");
  EXPECT_EQ(message_of([&] { gguf.integer("a.numbers"); }),
            "[model.gguf] key a.numbers must be an integer, but is array of 3 i32");
  EXPECT_EQ(message_of([&] { gguf.text("a.u8"); }), "[model.gguf] key a.u8 must be text, but is u8");
  EXPECT_EQ(message_of([&] { gguf.find_texts("a.numbers"); }),
            "[model.gguf] key a.numbers must hold text, but is array of 3 i32");
  EXPECT_EQ(message_of([&] { gguf.find_boolean("a.u8"); }), "[model.gguf] key a.u8 must be a boolean, but is u8");
  EXPECT_EQ(gguf.find_integer("a.none"), std::nullopt);
}

TEST(Gguf, RefusesNumbersThatDoNotFitOrAreNotFinite) {
  GgufBytes file;
  file.entry("big", kU64, raw<std::uint64_t>(1ULL << 63)).f32("nan", std::nanf(""));
  const auto bytes = file.bytes();
  const auto gguf = parse(bytes);
  EXPECT_THROW(gguf.integer("big"), UserError);
  EXPECT_THROW(gguf.real("nan"), UserError);
}

TEST(Gguf, RefusesOtherFiles) {
  expect_refused("", "ends inside");
  expect_refused("GGU", "ends inside");
  expect_refused("GGML" + std::string(60, '\0'), "does not begin with GGUF");
  auto file = small_file();
  file.version = 1;
  expect_refused(file.bytes(), "version 2 or 3, but is version 1");
  file.version = 0x03000000;
  expect_refused(file.bytes(), "big-endian");
}

TEST(Gguf, RefusesAbsurdCounts) {
  for (const std::uint64_t count : {std::uint64_t{1} << 20, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    auto file = small_file();
    file.tensor_count = count;
    expect_refused(file.bytes(), "the count of tensors counts");
    file = small_file();
    file.entry_count = count;
    expect_refused(file.bytes(), "the count of keys counts");
    expect_refused(GgufBytes().entry("k", kArray, raw<std::uint32_t>(kText) + raw(count)).bytes(),
                   "the value of key k counts");
    expect_refused(GgufBytes().entry("k", kArray, raw<std::uint32_t>(kF64) + raw(count)).bytes(),
                   "the value of key k counts");
    expect_refused(GgufBytes().entry("k", kText, raw(count)).bytes(), "ends inside the value of key k");
  }
  auto file = small_file();
  file.entry_count += 1;
  EXPECT_NE(refusal(file.bytes()), "");
}

TEST(Gguf, RefusesBrokenEntries) {
  expect_refused(GgufBytes().u32("k", 1).u32("k", 2).bytes(), "key k occurs twice");
  expect_refused(GgufBytes().u32("", 1).bytes(), "name of 1 to");
  expect_refused(GgufBytes().u32("a\x1b[2J", 1).bytes(), "printable ASCII");
  expect_refused(GgufBytes().u32("a\xff", 1).bytes(), "printable ASCII");
  expect_refused(GgufBytes().entry("k", 13, std::string(20, '\0')).bytes(), "type id of 0 to 12, but has 13");
  const auto nested =
      raw<std::uint32_t>(kArray) + raw<std::uint64_t>(1) + raw<std::uint32_t>(kU8) + raw<std::uint64_t>(0);
  expect_refused(GgufBytes().entry("k", kArray, nested).bytes(), "array of arrays");
  expect_refused(GgufBytes().entry("k", kBool, raw<std::uint8_t>(2)).bytes(), "booleans of 0 or 1, but has 2");
  for (const std::uint32_t alignment : {0U, 3U, 48U, 1U << 21})
    expect_refused(GgufBytes().u32("general.alignment", alignment).bytes(), "power of two");
  expect_refused(GgufBytes().text("general.alignment", "32").bytes(), "must hold integers");
}

TEST(Gguf, RefusesBrokenTensors) {
  const std::string data(4096, 'x');
  const auto with = [&](const std::vector<std::uint64_t>& ne, std::uint32_t type, std::uint64_t offset = 0) {
    return GgufBytes().tensor_at("blk.0.w", ne, type, offset).data(data).bytes();
  };
  EXPECT_EQ(refusal(with({32}, kGgmlF32)), "");
  EXPECT_EQ(refusal(with({1, 1, 1, 1}, kGgmlF32)), "");
  expect_refused(with({}, kGgmlF32), "tensor blk.0.w must have 1 to 4 dims, but has 0");
  expect_refused(with({1, 1, 1, 1, 1}, kGgmlF32), "1 to 4 dims, but has 5");
  expect_refused(with({0}, kGgmlF32), "ne[0] is 0");
  expect_refused(with({4, 1ULL << 63}, kGgmlF32), "ne[1] is 9223372036854775808");
  expect_refused(with({1ULL << 32, 1ULL << 32}, kGgmlF32), "product fits 63 bits");
  expect_refused(with({1ULL << 62}, kGgmlF32), "63 bits of bytes");
  expect_refused(with({16, 2}, kGgmlQ4_1), "rows of a multiple of 32 elements, but of 16");
  expect_refused(with({255}, kGgmlQ6K), "rows of a multiple of 256 elements, but of 255");
  expect_refused(with({128}, 41), "tensor blk.0.w has type q1_0, which is not supported yet; supported: f32, f16,");
  expect_refused(with({256}, 99), "type id 99, which is not known");
  expect_refused(with({32}, kGgmlF32, 16), "multiple of 32, but its offset is 16");
  expect_refused(with({32}, kGgmlF32, 4096), "inside the file");
  expect_refused(with({1025}, kGgmlF32), "inside the file");
  expect_refused(with({32}, kGgmlF32, ~std::uint64_t{31}), "inside the file");
  expect_refused(GgufBytes().tensor_at("a", {9}, kGgmlF32, 0).tensor_at("b", {8}, kGgmlF32, 32).data(data).bytes(),
                 "tensors a and b overlap");
  expect_refused(GgufBytes().tensor_at("a", {8}, kGgmlF32, 32).tensor_at("b", {8}, kGgmlF32, 32).data(data).bytes(),
                 "tensors a and b overlap");
  expect_refused(GgufBytes().tensor_at("a", {8}, kGgmlF32, 0).tensor_at("a", {8}, kGgmlF32, 32).data(data).bytes(),
                 "tensor a occurs twice");
}

TEST(Gguf, RefusesTheFileCutAnywhere) {
  const auto file = small_file();
  const auto bytes = file.bytes();
  const auto gguf = parse(bytes);
  const auto& last = gguf.tensors().back();
  const auto whole = static_cast<std::size_t>(last.offset + last.bytes);
  ASSERT_GT(whole, 500U);
  for (std::size_t size = 0; size < whole; ++size) {
    // A separate copy, so that a read after the end accesses foreign memory.
    const std::string cut(bytes.data(), size);
    EXPECT_NE(refusal(cut), "") << size;
  }
}

TEST(Gguf, SurvivesEveryFlippedBitOfTheHeader) {
  const auto file = small_file();
  const auto bytes = file.bytes();
  int refused = 0;
  int accepted = 0;
  for (std::size_t at = 0; at < file.header_size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto message = refusal(flipped);
      (message.empty() ? accepted : refused) += 1;
      if (!message.empty()) continue;
      const auto gguf = parse(flipped);
      for (const auto& tensor : gguf.tensors()) {
        EXPECT_GE(tensor.offset, 0);
        EXPECT_LE(tensor.offset + tensor.bytes, static_cast<std::int64_t>(flipped.size()));
      }
    }
  }
  // Flips in values and names are not detected; those in lengths, counts, types and offsets must be.
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 100);
}

}  // namespace weft::gguf_test
