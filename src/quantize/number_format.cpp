#include "quantize/number_format.h"

#include <array>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/quant_key.h"

namespace weft {
namespace {

constexpr std::array<std::pair<std::string_view, NumberFormat>, 7> kFormats = {{
    {"bf16", NumberFormat::bf16},
    {"fp8", NumberFormat::fp8},
    {"fp8-per-token", NumberFormat::fp8_per_token},
    {"fp8-block", NumberFormat::fp8_block},
    {"int8", NumberFormat::int8},
    {"nvfp4", NumberFormat::nvfp4},
    {"w4a16", NumberFormat::w4a16},
}};

// Describes the weights or the inputs of a compressed-tensors group, with the keys that its own writer emits.
Json arguments(const char* type, int bits, const char* strategy, const Json& dynamic, const Json& group_size) {
  return {{"num_bits", bits},           {"type", type},       {"symmetric", true},
          {"strategy", strategy},       {"dynamic", dynamic}, {"group_size", group_size},
          {"block_structure", nullptr}, {"actorder", nullptr}};
}

Json compressed_tensors(const char* format, Json weights, Json input, const std::vector<std::string>& ignored) {
  const Json group{{"targets", {"Linear"}},
                   {"weights", std::move(weights)},
                   {"input_activations", std::move(input)},
                   {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"}, {"format", format},  {"quantization_status", "compressed"},
          {"kv_cache_scheme", nullptr},           {"ignore", ignored}, {"config_groups", {{"group_0", group}}}};
}

}  // namespace

NumberFormat number_format_from_text(const std::string& text) {
  std::vector<std::string> words;
  for (const auto& [word, format] : kFormats) {
    if (word == text) return format;
    words.emplace_back(word);
  }
  fail_user("[--format] must be one of {}, but is {}{}", fmt::join(words, ", "), quote(text), suggestion(text, words));
}

std::string_view number_format_text(NumberFormat format) {
  for (const auto& [word, known] : kFormats)
    if (known == format) return word;
  return "";
}

BlockShape block_shape_from_text(const std::string& text) {
  constexpr std::int64_t kMost = 1 << 20;
  const std::vector<std::string> words = split_text(text, 'x');
  USER_CHECK(words.size() == 2, "[--block] must be rows and columns as in 64x64, but is {}", quote(text));
  const BlockShape block{human_integer(words[0], "--block"), human_integer(words[1], "--block")};
  USER_CHECK(block.rows >= 1 && block.rows <= kMost && block.columns >= 1 && block.columns <= kMost,
             "[--block] rows and columns must be 1 to {}, but are {}", kMost, quote(text));
  return block;
}

BlockShape group_from_text(const std::string& text) {
  const std::int64_t columns = human_integer(text, "--group-size");
  USER_CHECK(columns == 32 || columns == 64 || columns == 128, "[--group-size] must be 32, 64 or 128, but is {}",
             quote(text));
  return {1, columns};
}

Json quantization_json(NumberFormat format, const BlockShape& block, bool static_input,
                       const std::vector<std::string>& ignored) {
  switch (format) {
    case NumberFormat::bf16:
      return nullptr;
    case NumberFormat::fp8:
      return {{"quant_method", "fp8"},
              {"activation_scheme", static_input ? "static" : "dynamic"},
              {"modules_to_not_convert", ignored}};
    case NumberFormat::fp8_block:
      return {{"quant_method", "fp8"},
              {"fmt", "e4m3"},
              {"activation_scheme", "dynamic"},
              {"weight_block_size", {block.rows, block.columns}},
              {"modules_to_not_convert", ignored}};
    case NumberFormat::fp8_per_token:
      return compressed_tensors("float-quantized", arguments("float", 8, "channel", false, nullptr),
                                arguments("float", 8, "token", true, nullptr), ignored);
    case NumberFormat::int8:
      return compressed_tensors("int-quantized", arguments("int", 8, "channel", false, nullptr),
                                arguments("int", 8, "token", true, nullptr), ignored);
    case NumberFormat::nvfp4:
      return compressed_tensors("nvfp4-pack-quantized", arguments("float", 4, "tensor_group", false, kNvfp4Group),
                                arguments("float", 4, "tensor_group", "local", kNvfp4Group), ignored);
    case NumberFormat::w4a16:
      return compressed_tensors("pack-quantized", arguments("int", 4, "group", false, block.columns), nullptr, ignored);
  }
  return nullptr;
}

}  // namespace weft
