#include "io/safetensors.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/io/gguf_bytes.h"
#include "tests/thrown_message.h"

namespace weft::safetensors_test {

using testing::as_bytes;
using testing::raw;

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string data;
  for (std::size_t i = 0; i < data_bytes; ++i) data += static_cast<char>('a' + i % 26);
  return raw<std::uint64_t>(header.size()) + header + data;
}

Safetensors parse(const std::string& bytes) { return Safetensors::parse(as_bytes(bytes), "model.safetensors"); }

std::string refusal(const std::string& bytes) {
  return message_of([&] { parse(bytes); });
}

void expect_refused(const std::string& header, std::size_t data_bytes, std::string_view words) {
  const auto message = refusal(file_of(header, data_bytes));
  EXPECT_TRUE(message.starts_with("[model.safetensors] ")) << message;
  EXPECT_NE(message.find(words), std::string::npos) << "wanted: " << words << "\n  came: " << message;
}

constexpr auto kTwo = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
                      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirBytes) {
  const auto bytes = file_of(kTwo, 20);
  const auto file = parse(bytes);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_EQ(file.tensors[0].dtype, DType::f32);
  EXPECT_EQ(file.tensors[0].shape, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(bytes.substr(file.tensors[0].offset, file.tensors[0].bytes), "abcdefgh");
  EXPECT_EQ(file.tensors[1].dtype, DType::bf16);
  EXPECT_EQ(file.tensors[1].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(bytes.substr(file.tensors[1].offset, file.tensors[1].bytes), "ijklmnopqrst");
}

TEST(Safetensors, ReadsScalarsEmptyTensorsAndPaddedHeaders) {
  const auto file = parse(file_of(R"({"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                                  R"("e":{"dtype":"F32","shape":[0,4],"data_offsets":[8,8]},)"
                                  R"("t":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}}       )",
                                  9));
  ASSERT_EQ(file.tensors.size(), 3U);
  EXPECT_TRUE(file.tensors[0].shape.empty());
  EXPECT_EQ(file.tensors[1].name, "e");
  EXPECT_EQ(file.tensors[1].bytes, 0);
  EXPECT_TRUE(parse(file_of("{}", 0)).tensors.empty());
}

TEST(Safetensors, KnowsEveryDTypeOfTheFormatThatWeftHas) {
  for (const auto name : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "U16", "U32", "BOOL", "F8_E4M3",
                          "F8_E4M3FNUZ", "F8_E5M2", "F8_E8M0", "F4"}) {
    const auto dtype = dtype_from_safetensors(name);
    ASSERT_TRUE(dtype) << name;
    EXPECT_EQ(safetensors_dtype_name(*dtype), name);
    const auto bytes = static_cast<std::size_t>(bytes_of(*dtype, 8));
    const auto header = std::string(R"({"x":{"dtype":")") + name + R"(","shape":[8],"data_offsets":[0,)" +
                        std::to_string(bytes) + "]}}";
    EXPECT_EQ(parse(file_of(header, bytes)).tensors[0].dtype, *dtype);
  }
  EXPECT_EQ(dtype_from_safetensors("U64"), std::nullopt);
  EXPECT_EQ(safetensors_dtype_name(DType::q4_1), "");
}

TEST(Safetensors, RefusesHeadersOfAbsurdLength) {
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("1234567"), "");
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{1} << 40, ~std::uint64_t{0}})
    EXPECT_NE(refusal(raw(length) + "{}").find("header"), std::string::npos) << length;
  EXPECT_NE(refusal(raw<std::uint64_t>(0)), "");
}

TEST(Safetensors, RefusesBrokenJson) {
  expect_refused("{", 0, "wanted JSON");
  expect_refused(" {}", 0, "begin with a brace");
  expect_refused("[]", 0, "begin with a brace");
  expect_refused("{}x", 0, "wanted JSON");
  expect_refused(std::string("{}\0x", 4), 0, "wanted JSON");
  expect_refused(R"({"a":1})", 0, "entry of tensor a must be an object");
  expect_refused("{\"a\xff\":{}}", 0, "wanted JSON");
  expect_refused(R"({"a":)" + std::string(100000, '['), 0, "wanted JSON");
  expect_refused(R"({"a":{},"a":{}})", 0, "must have dtype, shape and data_offsets, but has 0 of them");
  const std::string entry = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_refused(R"({"a":)" + entry + R"(,"a":)" + entry + "}", 1, R"(tensor "a" occurs twice)");
  expect_refused(R"({"":)" + entry + "}", 1, "must not be empty");
  expect_refused(R"({"\u001b[2J":)" + entry + "}", 1, "control characters");
  expect_refused(R"({"__metadata__":{"a":1}})", 0, "must be a string");
  expect_refused(R"({"__metadata__":{"a":"1","a":"2"}})", 0, "occurs twice");
  expect_refused(R"({"__metadata__":[]})", 0, "object of strings");
}

TEST(Safetensors, RefusesBrokenEntries) {
  const auto with = [](const std::string& fields) { return R"({"x":{)" + fields + "}}"; };
  expect_refused(with(R"("dtype":"U8","shape":[1])"), 1, "has 2 of them");
  expect_refused(with(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1)"), 1, R"(but has "more")");
  expect_refused(with(R"("dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1])"), 1, "dtype of tensor x occurs");
  expect_refused(with(R"("dtype":"U64","shape":[1],"data_offsets":[0,8])"), 8,
                 R"(dtype "U64", which is not supported)");
  expect_refused(with(R"("dtype":8,"shape":[1],"data_offsets":[0,8])"), 8, "dtype of tensor x must be a string");
  expect_refused(with(R"("dtype":"U8","shape":1,"data_offsets":[0,1])"), 1, "list of integers");
  for (const auto dim : {"-1", "1.5", "1e3", "\"1\"", "null", "9223372036854775808", "18446744073709551616"})
    expect_refused(with(std::string(R"("dtype":"U8","data_offsets":[0,1],"shape":[)") + dim + "]"), 1, "[model.saf");
  expect_refused(with(R"("dtype":"U8","shape":[1,1,1,1,1,1,1],"data_offsets":[0,1])"), 1, "at most 6 dims");
  expect_refused(with(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,1])"), 1, "fits 63 bits");
  expect_refused(with(R"("dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,1])"), 1, "63 bits of bytes");
  expect_refused(with(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), 2, "multiple of 2");
  expect_refused(with(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4,
                 "tensor x of f32[2] must have 8 bytes, but data_offsets give 4");
  expect_refused(with(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])"), 1, "[begin, end], but is [1, 0]");
  expect_refused(with(R"("dtype":"U8","shape":[1],"data_offsets":[0])"), 1, "[begin, end]");
}

TEST(Safetensors, RefusesGapsOverlapsAndWrongSizes) {
  const auto two = [](int a_begin, int a_end, int b_begin, int b_end) {
    const auto entry = [](int begin, int end) {
      return R"({"dtype":"U8","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
             std::to_string(begin) + "," + std::to_string(end) + "]}";
    };
    return R"({"a":)" + entry(a_begin, a_end) + R"(,"b":)" + entry(b_begin, b_end) + "}";
  };
  EXPECT_EQ(refusal(file_of(two(0, 4, 4, 8), 8)), "");
  EXPECT_EQ(refusal(file_of(two(4, 8, 0, 4), 8)), "");
  expect_refused(two(0, 4, 5, 8), 8, "tensor b must begin at 4");
  expect_refused(two(0, 4, 3, 8), 8, "tensor b must begin at 4");
  expect_refused(two(1, 4, 4, 8), 8, "tensor a must begin at 0");
  expect_refused(two(0, 4, 4, 8), 7, "is it complete?");
  expect_refused(two(0, 4, 4, 8), 9, "must fill the 9 bytes");
}

TEST(Safetensors, RefusesTheFileCutAnywhere) {
  const auto bytes = file_of(kTwo, 20);
  ASSERT_GT(bytes.size(), 100U);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_NE(refusal(bytes.substr(0, size)), "") << size;
}

TEST(Safetensors, SurvivesEveryFlippedBitOfTheHeader) {
  const auto bytes = file_of(kTwo, 20);
  int refused = 0;
  for (std::size_t at = 0; at < bytes.size() - 20; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      auto flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      if (!refusal(flipped).empty()) {
        ++refused;
        continue;
      }
      for (const auto& tensor : parse(flipped).tensors)
        EXPECT_LE(tensor.offset + tensor.bytes, static_cast<std::int64_t>(flipped.size()));
    }
  EXPECT_GT(refused, 500);
}

TEST(SafetensorsIndex, MapsTensorsToFiles) {
  const auto index = parse_safetensors_index(
      R"({"metadata":{"total_size":12},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})", "index");
  EXPECT_EQ(index, (std::map<std::string, std::string>{{"a", "one.safetensors"}, {"b", "two.safetensors"}}));
}

TEST(SafetensorsIndex, RefusesWhatIsNoPlainIndex) {
  for (const auto text :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})", R"({"weight_map":{"a":"../b"}})",
        R"({"weight_map":{"a":"/etc/passwd"}})", R"({"weight_map":{"a":""}})", R"({"weight_map":{"a":".."}})",
        R"({"weight_map":{"a":"b\u0000c"}})", R"({"weight_map":{"a":"b","a":"c"}})",
        R"({"weight_map":{},"weight_map":{}})"})
    EXPECT_THROW(parse_safetensors_index(text, "index"), UserError) << text;
}

}  // namespace weft::safetensors_test
