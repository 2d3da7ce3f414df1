#include "io/nf4_weight.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/config_fields.h"
#include "tensor/group_blocks.h"

namespace weft {

Nf4State read_nf4_state(const Checkpoint& checkpoint, const QuantizationConfig& config, const QuantizedNames& names) {
  const std::string where = fmt::format("{}: {}", checkpoint.path(), names.shape);
  const Tensor& tensor = checkpoint.tensor(names.shape);
  USER_CHECK(tensor.meta.dtype == DType::u8 && tensor.meta.rank() == 1, "[{}] must be u8 of one dim, but is {}", where,
             tensor.meta.text());
  const std::string_view text(reinterpret_cast<const char*>(tensor.data()),
                              static_cast<std::size_t>(tensor.meta.shape[0].number()));
  const Json json = parse_config_json(text, where);
  const JsonFields fields(json, where);
  const std::string type = fields.find_text("quant_type").value_or("");
  USER_CHECK(type == "nf4", "[{}] quant_type must be nf4, but is {}", where, quote(type));
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const std::vector<std::int64_t> shape = fields.find_integers("shape");
  USER_CHECK(shape.size() == 2, "[{}] shape must have two dims, but is [{}]", where, fmt::join(shape, ", "));
  const std::int64_t block = needed_integer_in(fields, "blocksize", {kBlockOfNf4, kMost});
  USER_CHECK(block % kBlockOfNf4 == 0, "[{}] blocksize must be a multiple of {}, but is {}", where, kBlockOfNf4, block);
  Nf4State state{shape[0], shape[1], block, 0};
  if (!config.groups.has_quantized_scales) return state;
  const std::int64_t nested = needed_integer_in(fields, "nested_blocksize", {1, kMost});
  USER_CHECK(nested == kBlocksOfScales, "[{}] nested_blocksize must be {}, but is {}", where, kBlocksOfScales, nested);
  state.offset = needed_real_in(fields, "nested_offset", {-1e30, 1e30});
  return state;
}

void check_nf4_values(const Checkpoint& checkpoint, const std::string& name) {
  constexpr float kRounding = 1e-6f;
  const auto* values = checkpoint.tensor(name).as<const float>();
  for (int i = 0; i < 16; ++i)
    USER_CHECK(std::fabs(values[i] - kNf4Values[i]) < kRounding, "[{}] {} must have nf4's value {} at {}, but has {}",
               checkpoint.path(), name, kNf4Values[i], i, values[i]);
}

std::vector<float> nf4_scales(const Checkpoint& checkpoint, const QuantizedNames& names, const Nf4State& state) {
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

}  // namespace weft
