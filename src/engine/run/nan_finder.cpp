#include "engine/run/nan_finder.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/error.h"
#include "tensor/convert.h"
#include "tensor/kv_pages.h"

namespace weft {
namespace {

std::optional<BadPages> find_in_layer(const Tensor& pages, std::span<const std::int32_t> blocks, std::int64_t tokens) {
  const KvLayout& kv = pages.meta.kv;
  if (kv.state_rows != 0) return std::nullopt;
  const auto bad = [&](std::int64_t offset) { return !std::isfinite(load_float(kv.dtype, pages.data(), offset)); };
  std::optional<BadPages> found;
  for (std::int64_t position = 0; position < tokens; ++position) {
    const std::int64_t page = blocks[static_cast<std::size_t>(position / kv.block)], place = position % kv.block;
    for (std::int64_t head = 0; head < kv.heads; ++head)
      for (std::int64_t i = 0; i < kv.head_dim; ++i)
        for (const bool is_key : {true, false}) {
          const std::int64_t offset = is_key ? kv_key_offset(kv, page, head) + kv_key_element(kv, place, i)
                                             : kv_value_offset(kv, page, head) + kv_value_element(kv, place, i);
          if (!bad(offset)) continue;
          const bool is_infinite = std::isinf(load_float(kv.dtype, pages.data(), offset));
          // Within one position an infinity is preferred: an overflow explains the NaNs.
          if (!found || (is_infinite && !found->is_infinite))
            found = BadPages{.position = position, .is_key = is_key, .is_infinite = is_infinite};
        }
    if (found) return found;
  }
  return found;
}

constexpr std::uint16_t kF16Magnitude = 0x7fff, kF16Infinity = 0x7c00;

// Whether a key at token offsets [begin, end) of a page is infinite. `keys` are those of one head: [head_dim][block].
// Each step runs this for all its keys, so there is no branch for an element.
bool has_infinite_key(const KvLayout& kv, const std::uint16_t* keys, std::int64_t begin, std::int64_t end) {
  bool found = false;
  for (std::int64_t i = 0; i < kv.head_dim; ++i)
    for (std::int64_t place = begin; place < end; ++place)
      found |= (keys[i * kv.block + place] & kF16Magnitude) == kF16Infinity;
  return found;
}

}  // namespace

std::optional<BadPages> find_infinite_key(std::span<const Tensor> pages, std::span<const std::int32_t> blocks,
                                          std::int64_t begin, std::int64_t end) {
  for (std::size_t layer = 0; layer < pages.size(); ++layer) {
    const KvLayout& kv = pages[layer].meta.kv;
    if (kv.state_rows != 0) continue;
    CHECK(kv.dtype == DType::f16, "keys of {} do not overflow", dtype_text(kv.dtype));
    for (std::int64_t at = begin, next = 0; at < end; at = next) {
      next = std::min(end, (at / kv.block + 1) * kv.block);
      const std::int32_t page = blocks[static_cast<std::size_t>(at / kv.block)];
      for (std::int64_t head = 0; head < kv.heads; ++head) {
        const auto* keys = pages[layer].as<const std::uint16_t>() + kv_key_offset(kv, page, head);
        if (!has_infinite_key(kv, keys, at % kv.block, (next - 1) % kv.block + 1)) continue;
        while (!has_infinite_key(kv, keys, at % kv.block, at % kv.block + 1)) ++at;
        return BadPages{.pages = layer, .position = at, .is_key = true, .is_infinite = true};
      }
    }
  }
  return std::nullopt;
}

std::optional<BadPages> find_bad_pages(std::span<const Tensor> pages, std::span<const std::int32_t> blocks,
                                       std::int64_t tokens) {
  for (std::size_t layer = 0; layer < pages.size(); ++layer)
    if (auto found = find_in_layer(pages[layer], blocks, tokens)) {
      found->pages = layer;
      return found;
    }
  return std::nullopt;
}

bool has_nan(const Tensor& tensor) {
  if (tensor.meta.kind != MetaKind::tensor || !is_floating(tensor.meta.dtype) || !tensor.meta.is_contiguous() ||
      dtype_info(tensor.meta.dtype).block_bytes < 2)
    return false;
  const std::int64_t count = element_count(tensor.meta.shape).number();
  for (std::int64_t i = 0; i < count; ++i)
    if (std::isnan(load_float(tensor.meta.dtype, tensor.data(), i))) return true;
  return false;
}

Values NanFinder::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) {
  const auto any_nan = [](const Values& values) {
    return std::any_of(values.begin(), values.end(),
                       [](const Value& value) { return value.present() && has_nan(value.tensor()); });
  };
  if (!first_.empty() || depth_ > 0) return EagerEvaluator::evaluate(op, operands, attributes, maybe_inplace);
  const bool was_given_one = any_nan(operands);
  ++depth_;
  Values results = EagerEvaluator::evaluate(op, operands, attributes, maybe_inplace);
  --depth_;
  if (any_nan(results)) {
    first_ = fmt::format("{} {}{}", op.name, where_, was_given_one ? ", from a weight that has NaN" : "");
  }
  return results;
}

}  // namespace weft
