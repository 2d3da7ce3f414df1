#include "kernels/cpu/lib/expert_panels.h"

#include <cstring>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/result_kind.h"
#include "tensor/convert.h"

namespace weft::cpu {

Verdict experts_verdict(const Meta& experts, const std::optional<Meta>& bias) {
  if (!experts.is_contiguous()) return Verdict::no("experts is not contiguous");
  if (bias && (!float_kind(bias->dtype) || !bias->is_contiguous()))
    return Verdict::no(fmt::format("no bias of {}", bias->text()));
  return Verdict::yes();
}

std::int64_t find_expert_rows(std::string_view op, const TensorView& experts, std::int64_t expert_count,
                              std::int64_t limit, ExpertRows* parts) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < experts.size[0]; ++row) {
    const std::int64_t expert = index_at(experts, row);
    USER_CHECK(expert >= 0 && expert < expert_count, "[{}] expert {} is outside [0, {})", op, expert, expert_count);
    if (count > 0 && parts[count - 1].expert == expert && parts[count - 1].count < limit) {
      ++parts[count - 1].count;
    } else {
      parts[count++] = {expert, row, 1};
    }
  }
  return count;
}

void widen_expert_bias(const TensorView& bias, std::int64_t expert, std::int64_t panel, float* to) {
  const std::int64_t first = panel * kPanelColumns, columns = bias.size[1];
  std::memset(to, 0, kPanelColumns * sizeof(float));
  convert_row(bias.dtype, bias.data + bytes_of(bias.dtype, expert * columns + first), DType::f32,
              reinterpret_cast<std::byte*>(to), std::min<std::int64_t>(kPanelColumns, columns - first));
}

}  // namespace weft::cpu
