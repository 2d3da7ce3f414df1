#include "passes/scheme_table.h"

#include <algorithm>

#include "ops/fp8_quant.h"
#include "ops/group_quant.h"

namespace weft {
namespace {

std::optional<QuantSteps> steps_of(const QuantKey& key) {
  if (key.scale.is_static || key.scale2 || key.scale.group.rows != 1 || key.scale.dtype != DType::f32)
    return std::nullopt;
  const bool is_group = key.scale.group.columns > 0;
  if (key.dtype == DType::i8) {
    QuantSteps steps{.limit = kMaxInt8Code, .min_code = kMinInt8Code, .max_code = kMaxInt8Code};
    steps.divides_codes = steps.may_bound_scale = is_group;
    steps.may_multiply_codes = steps.replaces_nan = !is_group;
    steps.rounding = is_group ? std::vector<std::string>{"round", "trunc"} : std::vector<std::string>{"round"};
    return steps;
  }
  if (key.dtype != DType::f8e4m3 && key.dtype != DType::f8e4m3fnuz) return std::nullopt;
  const double limit = fp8_limit(key.dtype);
  QuantSteps steps{.limit = limit, .min_code = -limit, .max_code = limit};
  steps.may_multiply_scale = steps.may_limit_scale = true;
  steps.may_multiply_codes = !is_group;
  steps.may_be_power_of_two = is_group;
  return steps;
}

}  // namespace

SchemeTable::SchemeTable(const OpTable& ops) : ops_(ops) {
  for (const auto& [name, op] : ops.all())
    for (const QuantScheme& scheme : op.schemes)
      rows_.push_back({scheme.key, &op, scheme.attributes, steps_of(scheme.key)});
}

const SchemeRow* SchemeTable::find(const QuantKey& key) const {
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const SchemeRow& one) { return one.key == key; });
  return row == rows_.end() ? nullptr : &*row;
}

const Op* SchemeTable::fused(const std::string& front, const SchemeRow& row) const {
  return ops_.find(front + "_" + row.quantizer->name);
}

}  // namespace weft
