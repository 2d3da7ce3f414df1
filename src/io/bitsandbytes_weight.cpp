#include "io/bitsandbytes_weight.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/config_fields.h"
#include "tensor/convert.h"
#include "tensor/group_blocks.h"

namespace weft {
namespace {

const char* name_of(CodeValues values) { return values == CodeValues::nf4 ? "nf4" : "fp4"; }

}  // namespace

const float* values_of_codes(CodeValues values) {
  CHECK(values != CodeValues::integers, "codes that are integers have no table of numbers");
  return values == CodeValues::nf4 ? kNf4Values : kFp4Values;
}

BlockState read_block_state(const Checkpoint& checkpoint, const QuantizationConfig& config,
                            const QuantizedNames& names) {
  const bool is_other = checkpoint.find(names.shape) == nullptr && checkpoint.find(names.other_shape) != nullptr;
  const std::string& name = is_other ? names.other_shape : names.shape;
  const bool is_nf4 = (config.groups.values == CodeValues::nf4) != is_other;
  const CodeValues values = is_nf4 ? CodeValues::nf4 : CodeValues::fp4;
  const std::string where = fmt::format("{}: {}", checkpoint.path(), name);
  const Tensor& tensor = checkpoint.tensor(name);
  USER_CHECK(tensor.meta.dtype == DType::u8 && tensor.meta.rank() == 1, "[{}] must be u8 of one dim, but is {}", where,
             tensor.meta.text());
  const std::string_view text(reinterpret_cast<const char*>(tensor.data()),
                              static_cast<std::size_t>(tensor.meta.shape[0].number()));
  const Json json = parse_config_json(text, where);
  const JsonFields fields(json, where);
  const std::string type = fields.find_text("quant_type").value_or(""), wanted = name_of(values);
  USER_CHECK(type == wanted, "[{}] quant_type must be {}, but is {}", where, wanted, quote(type));
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const std::vector<std::int64_t> shape = fields.find_integers("shape");
  USER_CHECK(shape.size() == 2, "[{}] shape must have two dims, but is [{}]", where, fmt::join(shape, ", "));
  const std::int64_t block = needed_integer_in(fields, "blocksize", {kLeastBlock, kMost});
  USER_CHECK(block % kLeastBlock == 0, "[{}] blocksize must be a multiple of {}, but is {}", where, kLeastBlock, block);
  BlockState state{values, shape[0], shape[1], block, 0};
  if (!config.groups.has_quantized_scales) return state;
  const std::int64_t nested = needed_integer_in(fields, "nested_blocksize", {1, kMost});
  USER_CHECK(nested == kBlocksOfScales, "[{}] nested_blocksize must be {}, but is {}", where, kBlocksOfScales, nested);
  state.offset = needed_real_in(fields, "nested_offset", {-1e30, 1e30});
  return state;
}

void check_values(const Checkpoint& checkpoint, const std::string& name, CodeValues values) {
  constexpr float kRounding = 1e-6f;
  const auto* came = checkpoint.tensor(name).as<const float>();
  const float* wanted = values_of_codes(values);
  for (int i = 0; i < 16; ++i)
    USER_CHECK(std::fabs(came[i] - wanted[i]) < kRounding, "[{}] {} must have {}'s value {} at {}, but has {}",
               checkpoint.path(), name, name_of(values), wanted[i], i, came[i]);
}

std::vector<float> scales_of_blocks(const Checkpoint& checkpoint, const QuantizedNames& names,
                                    const BlockState& state) {
  const Tensor& tensor = checkpoint.tensor(names.scale);
  std::vector<float> scales(static_cast<std::size_t>(tensor.meta.shape[0].number()));
  if (names.values_of_scales.empty()) {
    std::copy_n(tensor.as<const float>(), scales.size(), scales.begin());
    return scales;
  }
  const auto* codes = tensor.as<const std::uint8_t>();
  const auto* values = checkpoint.tensor(names.values_of_scales).as<const float>();
  const auto* scales_of_scales = checkpoint.tensor(names.scales_of_scales).as<const float>();
  for (std::size_t i = 0; i < scales.size(); ++i)
    scales[i] = values[codes[i]] * scales_of_scales[i / kBlocksOfScales] + static_cast<float>(state.offset);
  return scales;
}

std::vector<float> scales_of_rows(const Checkpoint& checkpoint, const QuantizedNames& names) {
  constexpr float kGreatestCode = 127;
  const Tensor& tensor = checkpoint.tensor(names.scale);
  std::vector<float> scales(static_cast<std::size_t>(element_count(tensor.meta.shape).number()));
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = tensor.as<const float>()[i] / kGreatestCode;
  return scales;
}

void check_order_of_rows(const Checkpoint& checkpoint, const QuantizedNames& names) {
  const TensorEntry* entry = checkpoint.find(names.shape);
  if (entry == nullptr) return;  // files of early versions have none
  const Meta& meta = entry->tensor.meta;
  USER_CHECK(meta.dtype == DType::u8 && element_count(meta.shape) == Dim(1),
             "[{}] tensor {} must be one number of u8, but is {}", checkpoint.path(), names.shape, meta.text());
  const int format = *entry->tensor.as<const std::uint8_t>();
  USER_CHECK(format == 0, "[{}] tensor {} must be 0: codes in the order of rows, but is {}", checkpoint.path(),
             names.shape, format);
}

}  // namespace weft
