#include "kernels/cuda/lib/group_rules.h"

#include <fmt/core.h>

#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/row_launch.h"

namespace weft::cuda {

Verdict supported(const DeviceDescription& device) {
#if !defined(__x86_64__)
  return Verdict::no("the emulator runs on x86-64 alone");
#endif
  if (device.id.type == DeviceType::fake_cuda) return Verdict::yes();
  if (device.id.type == DeviceType::cuda) return has_device_code(device.compute_capability);
  return Verdict::no(fmt::format("runs on cuda and fake-cuda, and the device is {}", device_text(device.id)));
}

Verdict float_matrix(const std::optional<Meta>& meta, const char* name) {
  if (!meta || !meta->is_tensor()) return Verdict::no(fmt::format("{} is no tensor", name));
  if (meta->dtype != DType::bf16 && meta->dtype != DType::f16 && meta->dtype != DType::f32)
    return Verdict::no(fmt::format("{} is of {}; bf16, f16 and f32 are supported", name, dtype_text(meta->dtype)));
  if (meta->rank() != 2 || !meta->is_contiguous())
    return Verdict::no(fmt::format("{} is {}; contiguous matrices are supported", name, meta->text()));
  for (const Dim& side : meta->shape)
    if (side.is_number() && side.number() >= kSideLimit)
      return Verdict::no(fmt::format("{} is {}; sides below 2^31 are supported", name, meta->text()));
  return Verdict::yes();
}

void check_sides(const std::string& kernel, const TensorView& x) { check_sides(kernel.c_str(), x.size[0], x.size[1]); }

Verdict whole_loads(const Meta& x) {
  const std::int64_t of_load = elements_of_load(x.dtype);
  const Dim& columns = x.shape.back();
  if (columns.is_number() && columns.number() % of_load == 0) return Verdict::yes();
  return Verdict::no(fmt::format("rows have {} columns; multiples of {} are supported", columns.text(), of_load));
}

Verdict supports_codes(const KernelRequest& request) {
  const Attribute* dtype = request.attributes.find("dtype");
  if (dtype == nullptr || dtype->dtype() == DType::f8e4m3) return Verdict::yes();
  return Verdict::no(fmt::format("codes are {}; f8e4m3 and i8 are supported", dtype_text(dtype->dtype())));
}

Verdict supports_groups(const KernelRequest& request, std::size_t scales) {
  const Attributes& a = request.attributes;
  if (Verdict verdict = supports_codes(request); !verdict) return verdict;
  const std::int64_t group = a.at("group_size").integer();
  if (group != 32 && group != 64 && group != 128)
    return Verdict::no(fmt::format("groups have {} columns; 32, 64 or 128 do", group));
  const Dim& columns = request.results[0].shape.back();
  if (!columns.is_number() || columns.number() % group != 0)
    return Verdict::no(fmt::format("rows of {} columns are no whole groups of {}", columns.text(), group));
  if (request.results[scales].rank() != 2) return Verdict::no("scales are no matrix");
  return Verdict::yes();
}

bool truncates(const Attributes& attributes) {
  const Attribute* rounding = attributes.find("rounding");
  return rounding != nullptr && rounding->word() == "toward_zero";
}

GroupRule group_rule(const KernelCall& call, std::size_t bound) {
  const Attributes& a = call.attributes;
  const auto number = [&](const char* name) { return static_cast<float>(a.at(name).real()); };
  GroupRule rule{.least_magnitude = number("eps"), .least_scale = number("minimum_scale")};
  if (a.find("use_ue8m0") == nullptr) return rule;  // int8
  rule.bound = call.operands[bound].as<float>();
  rule.bounds_magnitude = a.at("scale_ub_of").word() == "magnitude";
  rule.least_power = number("ue8m0_minimum");
  rule.by_reciprocal = a.at("scale_by").word() == "reciprocal";
  rule.power_of_two = a.at("use_ue8m0").boolean();
  return rule;
}

GroupRule token_rule(const KernelCall& call, std::size_t bound) {
  const Attributes& a = call.attributes;
  if (a.find("dtype") == nullptr) return {.codes_by_reciprocal = true};  // int8
  constexpr float kLeastScale = 1.0 / (448 * 512);
  const Attribute& least = a.at("minimum_scale");
  return {.bound = call.operands[bound].as<float>(),
          .least_scale = least.is_none() ? kLeastScale : static_cast<float>(least.real()),
          .bounds_magnitude = true,
          .by_reciprocal = a.at("scale_by").word() == "reciprocal",
          .codes_by_reciprocal = a.at("codes_by").word() == "reciprocal"};
}

ScaleLayout scale_places(const TensorView& scales) {
  return {scales.as<float>(), static_cast<std::uint32_t>(scales.stride[0]),
          static_cast<std::uint32_t>(scales.stride[1])};
}

}  // namespace weft::cuda
