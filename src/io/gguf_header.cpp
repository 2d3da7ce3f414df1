#include "io/gguf_header.h"

#include <array>

#include <fmt/core.h>

#include "base/error.h"

namespace weft {
namespace {

struct GgmlType {
  std::uint32_t id;
  std::string_view name;
  std::optional<DType> dtype;
};

// enum ggml_type of ggml/include/ggml.h. The gaps are types that ggml has dropped.
constexpr std::array<GgmlType, 36> kGgmlTypes = {{
    {0, "f32", DType::f32},        {1, "f16", DType::f16},          {2, "q4_0", DType::q4_0},
    {3, "q4_1", DType::q4_1},      {6, "q5_0", DType::q5_0},        {7, "q5_1", DType::q5_1},
    {8, "q8_0", DType::q8_0},      {9, "q8_1", std::nullopt},       {10, "q2_K", DType::q2_k},
    {11, "q3_K", DType::q3_k},     {12, "q4_K", DType::q4_k},       {13, "q5_K", DType::q5_k},
    {14, "q6_K", DType::q6_k},     {15, "q8_K", std::nullopt},      {16, "iq2_xxs", DType::iq2_xxs},
    {17, "iq2_xs", DType::iq2_xs}, {18, "iq3_xxs", DType::iq3_xxs}, {19, "iq1_s", DType::iq1_s},
    {20, "iq4_nl", DType::iq4_nl}, {21, "iq3_s", DType::iq3_s},     {22, "iq2_s", DType::iq2_s},
    {23, "iq4_xs", DType::iq4_xs}, {24, "i8", DType::i8},           {25, "i16", DType::i16},
    {26, "i32", DType::i32},       {27, "i64", DType::i64},         {28, "f64", DType::f64},
    {29, "iq1_m", DType::iq1_m},   {30, "bf16", DType::bf16},       {34, "tq1_0", DType::tq1_0},
    {35, "tq2_0", DType::tq2_0},   {36, "i2_s", std::nullopt},      {39, "mxfp4", DType::mxfp4},
    {40, "nvfp4", DType::nvfp4},   {41, "q1_0", std::nullopt},      {42, "q2_0", std::nullopt},
}};

}  // namespace

std::int64_t gguf_number_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::text:
    case GgufType::array:
      return 0;
  }
  return 0;
}

std::span<const std::byte> GgufCursor::take(std::uint64_t bytes) {
  USER_CHECK(bytes <= left(), "[{}] the file ends inside {}: wanted {} bytes at offset {}, but {} are left", where_,
             what_, bytes, offset_, left());
  const auto taken = file_.subspan(offset_, bytes);
  offset_ += bytes;
  return taken;
}

std::string_view GgufCursor::text() {
  const auto length = number<std::uint64_t>();
  const auto bytes = take(length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view GgufCursor::name(std::uint64_t limit) {
  const auto name = text();
  USER_CHECK(!name.empty() && name.size() <= limit, "[{}] {} must have a name of 1 to {} bytes, but is of {}", where_,
             what_, limit, name.size());
  // Names appear in messages, on terminals and in JSON.
  for (const char c : name)
    USER_CHECK(c > ' ' && c < '\x7f', "[{}] the name of {} must be printable ASCII, but has the byte 0x{:02x}", where_,
               what_, static_cast<unsigned char>(c));
  return name;
}

std::uint64_t GgufCursor::count(std::uint64_t least_bytes) {
  const auto count = number<std::uint64_t>();
  USER_CHECK(count <= left() / least_bytes, "[{}] {} counts {} elements of at least {} bytes, but {} bytes are left",
             where_, what_, count, least_bytes, left());
  return count;
}

GgufType GgufCursor::type() {
  const auto id = number<std::uint32_t>();
  USER_CHECK(id <= static_cast<std::uint32_t>(GgufType::f64), "[{}] {} must have a type id of 0 to 12, but has {}",
             where_, what_, id);
  return static_cast<GgufType>(id);
}

std::string_view ggml_type_name(std::uint32_t id) {
  for (const auto& type : kGgmlTypes)
    if (type.id == id) return type.name;
  return "";
}

std::optional<DType> dtype_from_ggml(std::uint32_t id) {
  for (const auto& type : kGgmlTypes)
    if (type.id == id) return type.dtype;
  return std::nullopt;
}

std::string supported_ggml_types() {
  std::string text;
  for (const auto& type : kGgmlTypes)
    if (type.dtype) text += fmt::format("{}{}", text.empty() ? "" : ", ", type.name);
  return text;
}

}  // namespace weft
