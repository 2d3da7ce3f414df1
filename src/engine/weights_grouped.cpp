// The part of Weights that reads codes with a scale and a zero point for each group of columns.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "engine/weights.h"
#include "io/grouped_weight.h"
#include "io/quantized_weight.h"

namespace weft {
namespace {

constexpr std::int64_t kRowsAtOnce = 32;  // read at a time

// Experts share their input, so it cannot have the order of the groups of one of them.
bool is_of_expert(const std::string& key) { return key.find(".experts.") != std::string::npos; }

// The rows of several weights, one after another. One thread uses it.
class MergedRows {
 public:
  explicit MergedRows(const std::vector<GroupedWeight>& parts) : parts_(parts) {}

  // Valid until the next call.
  const std::byte* row(std::int64_t index) {
    const GroupedWeight* part = parts_.data();
    while (index >= part->meta().shape[0].number()) index -= (part++)->meta().shape[0].number();
    const std::int64_t row_bytes = bytes_of(part->meta().dtype, part->meta().shape[1].number());
    if (part != read_ || index / kRowsAtOnce != first_ / kRowsAtOnce) {
      read_ = part;
      first_ = index / kRowsAtOnce * kRowsAtOnce;
      const std::int64_t count = std::min(kRowsAtOnce, part->meta().shape[0].number() - first_);
      rows_.resize(static_cast<std::size_t>(count * row_bytes));
      part->read_rows(first_, count, rows_.data());
    }
    return rows_.data() + (index - first_) * row_bytes;
  }

 private:
  const std::vector<GroupedWeight>& parts_;
  const GroupedWeight* read_ = nullptr;
  std::int64_t first_ = 0;
  std::vector<std::byte> rows_;
};

}  // namespace

bool Weights::is_grouped(const std::string& key) const {
  return is_quantized(key) && facts_.config.quantization->scheme == QuantizationScheme::grouped;
}

std::string Weights::order_key(const std::vector<std::string>& keys) const {
  if (!is_grouped(keys[0]) || !facts_.config.quantization->groups.is_reordered) return "";
  if (is_on_gpu() || is_of_expert(keys[0])) return "";
  return quantized_names(*facts_.config.quantization, keys[0]).groups;
}

Tensor Weights::order(const std::string& key) const {
  const std::vector<std::int32_t> order = column_order(checkpoint_, *facts_.config.quantization, key);
  return Tensor::from_bytes(Meta::tensor(DType::i32, {static_cast<std::int64_t>(order.size())}), order.data());
}

bool Weights::has_same_order(const std::string& key, const std::string& other) const {
  const std::string name = order_key({key}), other_name = order_key({other});
  if (name.empty() || checkpoint_.is_dummy()) return name.empty() == other_name.empty();
  const QuantizationConfig& config = *facts_.config.quantization;
  return column_order(checkpoint_, config, name) == column_order(checkpoint_, config, other_name);
}

Meta Weights::grouped_type(const std::string& key) const {
  const QuantizationConfig& config = *facts_.config.quantization;
  const Meta blocks = grouped_meta(checkpoint_, config, key);
  // Where the input has no order of the groups, the weight is read as numbers.
  const bool is_read_as_numbers = config.groups.is_reordered && order_key({key}).empty();
  return is_read_as_numbers ? Meta::tensor(DType::f32, blocks.shape) : blocks;
}

Tensor Weights::grouped_rows(const std::string& key) const {
  const QuantizationConfig& config = *facts_.config.quantization;
  if (!is_block(grouped_type(key).dtype)) return dequantized_weight(checkpoint_, config, key);
  const GroupedWeight weight(checkpoint_, config, key);
  Tensor result = Tensor::empty(weight.meta());
  const std::int64_t rows = weight.meta().shape[0].number();
  const std::int64_t row_bytes = bytes_of(weight.meta().dtype, weight.meta().shape[1].number());
  context_.threads->run((rows + kRowsAtOnce - 1) / kRowsAtOnce, [&](std::int64_t chunk, int) {
    const std::int64_t first = chunk * kRowsAtOnce;
    weight.read_rows(first, std::min(kRowsAtOnce, rows - first), result.data() + first * row_bytes);
  });
  return result;
}

// Panels are written from the codes of the file, without a copy of the weight in between. Layouts in which a row is
// spread over all pages are read many times, so the pages are dropped at the end.
Tensor Weights::pack_groups(const Packing& packing, const std::vector<std::string>& keys, const Meta& plain) {
  std::vector<GroupedWeight> parts;
  for (const std::string& key : keys) parts.emplace_back(checkpoint_, *facts_.config.quantization, key);
  const auto rows_of_unit = [&]() -> RowOfWeight {
    return [rows = std::make_shared<MergedRows>(parts)](std::int64_t index) { return rows->row(index); };
  };
  Tensor packed = pack_rows(packing, plain, rows_of_unit, *context_.threads, nullptr, room(packing.bytes(plain)));
  for (const std::string& key : keys) drop_pages(key);
  return packed;
}

}  // namespace weft
