#include "io/scaled_blocks.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "tensor/group_blocks.h"

namespace weft {
namespace {

constexpr std::int64_t kNvfp4Bytes = 36, kNvfp4Scales = kSmallScales, kNvfp4Half = 8;
constexpr int kNoScale = 0x7f;

// The first four bytes are scales of e4m3. Their sign is not read, and 0x7f means 0. Returns false for 0xff, which
// means 480 there and NaN in e4m3. In the file byte j of a group's eight has the codes j and j + 8; here it has the
// codes 2 j and 2 j + 1.
bool write_scaled_block(const std::byte* from, float factor, std::byte* to) {
  std::memcpy(to, &factor, kFloatScaleBytes);
  to += kFloatScaleBytes;
  for (std::int64_t group = 0; group < kNvfp4Scales; ++group) {
    const int code = std::to_integer<int>(from[group]), scale = code & kNoScale;
    if (code != kNoScale && scale == kNoScale) return false;
    to[group] = static_cast<std::byte>(code == kNoScale ? 0 : scale);
  }
  for (std::int64_t group = 0; group < kNvfp4Scales; ++group) {
    const std::byte* codes = from + kNvfp4Scales + group * kNvfp4Half;
    const auto code = [&](std::int64_t i) {
      return i < kNvfp4Half ? codes[i] & std::byte{15} : codes[i - kNvfp4Half] >> 4;
    };
    std::byte* pairs = to + kNvfp4Scales + group * kNvfp4Half;
    for (std::int64_t j = 0; j < kNvfp4Half; ++j) pairs[j] = code(2 * j) | code(2 * j + 1) << 4;
  }
  return true;
}

}  // namespace

std::string factors_of_blocks(const Checkpoint& checkpoint, const std::string& weight) {
  constexpr std::string_view kEnd = ".weight";
  if (!checkpoint.is_gguf() || !weight.ends_with(kEnd)) return "";
  const TensorEntry* entry = checkpoint.find(weight);
  if (entry == nullptr || entry->tensor.meta.dtype != DType::nvfp4) return "";
  std::string factors = weight.substr(0, weight.size() - kEnd.size()) + ".scale";
  return checkpoint.find(factors) == nullptr ? "" : factors;
}

Meta scaled_blocks_meta(const Checkpoint& checkpoint, const std::string& weight) {
  return Meta::tensor(DType::e2m1g16, checkpoint.tensor(weight).meta.shape);
}

Tensor scaled_blocks(const Checkpoint& checkpoint, const std::string& weight) {
  const std::string name = factors_of_blocks(checkpoint, weight);
  CHECK(!name.empty(), "{} has no factors", weight);
  const Tensor &blocks = checkpoint.tensor(weight), &factors = checkpoint.tensor(name);
  const std::int64_t matrices = blocks.meta.rank() == 3 ? blocks.meta.shape[0].number() : 1;
  USER_CHECK(factors.meta == Meta::tensor(DType::f32, {matrices}), "[{}] tensor {} must be f32[{}], but is {}",
             checkpoint.path(), name, matrices, factors.meta.text());
  Tensor result = Tensor::empty(scaled_blocks_meta(checkpoint, weight));
  const std::int64_t count = blocks.meta.bytes().number() / kNvfp4Bytes,
                     block_bytes = dtype_info(DType::e2m1g16).block_bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    const float factor = factors.as<const float>()[i / (count / matrices)];
    USER_CHECK(std::isfinite(factor), "[{}] tensor {} must be finite, but has {}", checkpoint.path(), name, factor);
    USER_CHECK(write_scaled_block(blocks.data() + i * kNvfp4Bytes, factor, result.data() + i * block_bytes),
               "[{}] tensor {} must have scales of e4m3, but block {} has the code 255", checkpoint.path(), weight, i);
  }
  return result;
}

}  // namespace weft
