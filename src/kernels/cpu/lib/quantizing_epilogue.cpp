#include "kernels/cpu/lib/quantizing_epilogue.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "tensor/convert.h"
#include "tensor/quant_key.h"

namespace weft::cpu {
namespace {

float real_attribute(const KernelCall& call, const char* name) {
  return static_cast<float>(call.attributes.at(name).real());
}
bool by_reciprocal(const KernelCall& call, const char* name) { return call.attributes.at(name).word() == "reciprocal"; }

Verdict supports_always(const KernelRequest&, std::size_t) { return Verdict::yes(); }

Verdict supports_fp8(const KernelRequest& request, std::size_t) {
  const DType dtype = request.attributes.at("dtype").dtype();
  if (dtype == DType::f8e4m3 || dtype == DType::f8e4m3fnuz) return Verdict::yes();
  return Verdict::no(fmt::format("codes are {}; f8e4m3 and f8e4m3fnuz are supported", dtype_text(dtype)));
}

bool is_fnuz(const KernelCall& call) { return call.attributes.at("dtype").dtype() == DType::f8e4m3fnuz; }

// The distance from a group's scale to that of the next group of the row.
std::int64_t scales_step(const KernelCall& call) {
  const TensorView& scales = call.results[1];
  return scales.stride[scales.rank - 1];
}

QuantTask int8_groups(const KernelCall& call, std::size_t, std::int64_t columns) {
  const std::int64_t group = call.attributes.at("group_size").integer();
  CHECK(group > 0 && columns % group == 0, "[cpu] group_size {} of {} columns", group, columns);
  return {.rule = QuantRule::int8_groups,
          .scales_step = scales_step(call),
          .columns = columns,
          .group = group,
          .least = real_attribute(call, "eps"),
          .least_scale = real_attribute(call, "minimum_scale"),
          .toward_zero = call.attributes.at("rounding").word() == "toward_zero"};
}

QuantTask int8_row(const KernelCall&, std::size_t, std::int64_t columns) {
  return {.rule = QuantRule::int8_rows, .columns = columns, .group = columns};
}

// Sets the bound to scale_ub, which may be absent.
void set_bound(QuantTask& task, const TensorView& scale_ub, Bounded what) {
  if (!scale_ub.present()) return;
  task.bounded = what;
  task.bound = load_float(scale_ub.dtype, scale_ub.data, 0);
}

QuantTask fp8_groups(const KernelCall& call, std::size_t tensor, std::int64_t columns) {
  const Attributes& a = call.attributes;
  QuantTask task{.rule = QuantRule::fp8_groups,
                 .scales_step = scales_step(call),
                 .columns = columns,
                 .group = std::min(a.at("group_size").integer(), columns),
                 .least = real_attribute(call, "eps"),
                 .least_scale = real_attribute(call, "minimum_scale"),
                 .fnuz = is_fnuz(call),
                 .scale_by_reciprocal = by_reciprocal(call, "scale_by"),
                 .power_of_two = a.at("use_ue8m0").boolean(),
                 .least_power = real_attribute(call, "ue8m0_minimum")};
  set_bound(task, call.operands[tensor], a.at("scale_ub_of").word() == "scale" ? Bounded::scale : Bounded::magnitude);
  return task;
}

QuantTask fp8_row(const KernelCall& call, std::size_t tensor, std::int64_t columns) {
  const float least_scale = static_cast<float>(1.0 / ((is_fnuz(call) ? 224 : 448) * 512));
  const bool states_least = !call.attributes.at("minimum_scale").is_none();
  QuantTask task{.rule = QuantRule::fp8_groups,
                 .columns = columns,
                 .group = columns,
                 .least_scale = states_least ? real_attribute(call, "minimum_scale") : least_scale,
                 .fnuz = is_fnuz(call),
                 .scale_by_reciprocal = by_reciprocal(call, "scale_by"),
                 .codes_by_reciprocal = by_reciprocal(call, "codes_by")};
  set_bound(task, call.operands[tensor], Bounded::magnitude);
  return task;
}

// The extents of the part of x [rows, columns] that one scale is for.
struct Extent {
  std::int64_t rows, columns;
};
Extent extent_of_scales(const KernelCall& call, const TensorView& scale, std::int64_t rows, std::int64_t columns) {
  const Attribute& stated = call.attributes.at("group_shape");
  if (scale.rank == 2 && stated.is_none()) return {rows / scale.size[0], columns / scale.size[1]};
  const Shape shape = stated.as_shape();
  const auto extent = [&](std::size_t i, std::int64_t all) {
    return shape[i].number() == -1 ? all : shape[i].number();
  };
  return {extent(0, rows), extent(1, columns)};
}

QuantTask fp8_given(const KernelCall& call, std::size_t tensor, std::int64_t columns) {
  const TensorView& scale = call.operands[tensor];
  const TensorView& codes = call.results[0];
  QuantTask task{.rule = QuantRule::fp8_given,
                 .columns = columns,
                 .fnuz = is_fnuz(call),
                 .given = reinterpret_cast<const float*>(scale.data)};
  // Groups that share a given scale may be cut, since no maximum is needed.
  const std::int64_t block = std::min(columns, kBlockColumns);
  if (scale.rank == 0 || (scale.rank == 1 && scale.size[0] == 1)) {
    task.group = block;
    return task;
  }
  const std::int64_t rows = codes.size[0];
  const Extent extent = extent_of_scales(call, scale, rows, columns);
  const bool of_all_columns = extent.columns == columns, of_all_rows = extent.rows == rows;
  task.group = of_all_columns ? block : extent.columns;
  task.given_rows = extent.rows;
  // A vector is one row or one column of scales.
  task.given_stride = of_all_rows ? 0 : scale.stride[0];
  task.given_step = of_all_columns ? 0 : scale.stride[scale.rank - 1];
  return task;
}

Verdict supports_given(const KernelRequest& request, std::size_t tensor) {
  if (Verdict verdict = supports_fp8(request, tensor); !verdict) return verdict;
  const Attribute& stated = request.attributes.at("group_shape");
  if (stated.is_none()) return Verdict::yes();
  const Shape shape = stated.as_shape();
  const bool numbers = std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_number(); });
  return numbers ? Verdict::yes() : Verdict::no("group_shape is symbolic");
}

// Sets the elements of the tiles that belong to no scale to 0.
void clear_gaps(const TensorView& tiles, std::int64_t rows, std::int64_t groups) {
  if (tiles.elements() > rows * groups) std::memset(tiles.data, 0, static_cast<std::size_t>(tiles.elements()));
}

QuantTask fp4_groups(const KernelCall& call, std::size_t tensor, std::int64_t columns) {
  static_assert(kFp4Group == kNvfp4Group);
  CHECK(columns % kFp4Group == 0, "[cpu] groups of {} of {} columns", kFp4Group, columns);
  const TensorView& global_scale = call.operands[tensor];
  QuantTask task{.rule = QuantRule::fp4_groups,
                 .columns = columns,
                 .group = kFp4Group,
                 .global_scale = load_float(global_scale.dtype, global_scale.data, 0)};
  if (!call.attributes.at("swizzled_scales").boolean()) return task;
  const TensorView& scales = call.results[1];
  clear_gaps(scales, call.results[0].size[0], columns / kFp4Group);
  task.scale_codes = scales.as<std::uint8_t>();
  task.scale_tiles = scales.size[2] / 4;
  return task;
}

constexpr QuantizingEpilogue kEpilogues[] = {
    {"dynamic_per_token_scaled_fp8_quant", true, supports_fp8, fp8_row},
    {"dynamic_per_token_scaled_int8_quant", true, supports_always, int8_row},
    {"per_token_group_quant_fp8", true, supports_fp8, fp8_groups, 0, false, true},
    {"per_token_group_quant_int8", true, supports_always, int8_groups, 0, true, true},
    {"scaled_fp4_quant", true, supports_always, fp4_groups, kFp4Group},
    {"static_scaled_fp8_quant", false, supports_given, fp8_given},
};

}  // namespace

std::span<const QuantizingEpilogue> quantizing_epilogues() { return kEpilogues; }

Verdict supports_waiting(const QuantizingEpilogue& epilogue, const KernelRequest& request, std::size_t tensor) {
  if (Verdict verdict = epilogue.supports(request, tensor); !verdict) return verdict;
  const Dim& columns = request.results[0].shape.back();
  if (!columns.is_number()) return Verdict::no(fmt::format("rows have {} columns", columns.text()));
  std::int64_t group = epilogue.group > 0 ? epilogue.group : columns.number();
  if (const Attribute* stated = request.attributes.find("group_size")) group = std::min(group, stated->integer());
  if (group <= kWaitingColumns) return Verdict::yes();
  return Verdict::no(fmt::format("groups have {} columns; up to {} are supported", group, kWaitingColumns));
}

QuantTask with_results(QuantTask task, const RowRun& run) {
  task.codes = reinterpret_cast<std::int8_t*>(run.data[0]);
  task.codes_stride = run.stride[0];
  task.scales = reinterpret_cast<float*>(run.data[1]);
  if (task.scale_tiles == 0) task.scale_codes = reinterpret_cast<std::uint8_t*>(run.data[1]);
  task.scales_stride = run.stride[1];
  task.rows = run.count;
  task.first_row = run.first;
  return task;
}

Kernel quantized_rows_kernel(const std::string& front, const QuantizingEpilogue& epilogue,
                             std::function<Verdict(const KernelRequest&)> supports, QuantizedRowRun run) {
  const auto prepare = [run = std::move(run), epilogue](Kernel& kernel, const DeviceDescription& device) {
    std::vector<DType> as_fast;  // dtypes for which generated code is as fast
    if (epilogue.yields_f32) as_fast.push_back(DType::f32);
    if (epilogue.yields_bf16 && device.features >= CpuFeatures::avx512) as_fast.push_back(DType::bf16);
    kernel.yields = yields(0, as_fast);
    const QuantizedRowKernels* kernels =
        table_for(device, quantized_row_kernels_baseline, quantized_row_kernels_avx2, quantized_row_kernels_avx512);
    kernel.run = [kernels, run](const KernelCall& call) { run(*kernels, call); };
  };
  return {.op = front.empty() ? epilogue.op : fmt::format("{}_{}", front, epilogue.op),
          .provider = "cpu",
          .supports = std::move(supports),
          .prepare = prepare,
          .note = kRowWiseNote};
}

Kernel quantizing_kernel(const QuantizingEpilogue& epilogue) {
  const auto supports = [epilogue](const KernelRequest& request) {
    if (Verdict verdict = float_rows(request.operands[0], "x"); !verdict) return verdict;
    return epilogue.supports(request, 1);
  };
  return quantized_rows_kernel(
      "", epilogue, supports, [epilogue](const QuantizedRowKernels& kernels, const KernelCall& call) {
        const TensorView& x = call.operands[0];
        const std::int64_t columns = x.size[x.rank - 1];
        const QuantTask shared = epilogue.task(call, 1, columns);
        const auto function = kernels.rows[static_cast<std::size_t>(element_of(x.dtype))];
        const RowSpace rows({&call.results[0], &epilogue.scales(call), &x});
        rows.run(call.threads, columns * (1 + dtype_info(x.dtype).block_bytes), [&](const RowRun& run) {
          QuantTask task = with_results(shared, run);
          task.x = run.data[2];
          task.x_stride = run.stride[2];
          function(task);
        });
      });
}

}  // namespace weft::cpu
