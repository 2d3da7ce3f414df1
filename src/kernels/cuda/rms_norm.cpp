// rms_norm and fused_add_rms_norm, plain and followed by quantization; device/rms_norm.cu has the kernels.

#include <array>

#include <fmt/core.h>

#include "kernels/cuda/emulator/run_call.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/row_launch.h"
#include "kernels/cuda/lib/two_forms.h"

namespace weft::cuda {
namespace {

enum class NormEpilogue : std::uint8_t { plain, static_fp8, token_fp8, token_int8, group_fp8, group_int8 };

struct EpilogueRow {
  NormEpilogue kind;
  const char* op;      // suffix of the op's name
  const char* kernel;  // suffix of the kernel's name
};
constexpr std::array kEpilogues = {
    EpilogueRow{NormEpilogue::plain, "", "plain"},
    EpilogueRow{NormEpilogue::static_fp8, "_static_scaled_fp8_quant", "static_f8e4m3"},
    EpilogueRow{NormEpilogue::token_fp8, "_dynamic_per_token_scaled_fp8_quant", "token_f8e4m3"},
    EpilogueRow{NormEpilogue::token_int8, "_dynamic_per_token_scaled_int8_quant", "token_i8"},
    EpilogueRow{NormEpilogue::group_fp8, "_per_token_group_quant_fp8", "group_f8e4m3"},
    EpilogueRow{NormEpilogue::group_int8, "_per_token_group_quant_int8", "group_i8"}};

// One op: the indices of its operands and results.
struct Norm {
  bool adds;
  EpilogueRow epilogue;

  std::string front() const { return adds ? "fused_add_rms_norm" : "rms_norm"; }
  std::size_t weight() const { return adds ? 2 : 1; }
  std::size_t epilogue_tensor() const { return weight() + 1; }
  bool gives_scales() const {
    return epilogue.kind != NormEpilogue::plain && epilogue.kind != NormEpilogue::static_fp8;
  }
  bool is_of_token() const {
    return epilogue.kind == NormEpilogue::token_fp8 || epilogue.kind == NormEpilogue::token_int8;
  }
  bool has_groups() const {
    return epilogue.kind == NormEpilogue::group_fp8 || epilogue.kind == NormEpilogue::group_int8;
  }
};

Verdict supports_weight(const std::optional<Meta>& weight, DType x) {
  if (!weight) return Verdict::yes();
  if (weight->is_contiguous() && (weight->dtype == x || weight->dtype == DType::f32)) return Verdict::yes();
  return Verdict::no(fmt::format("weight is {}; contiguous f32 or {} is supported", weight->text(), dtype_text(x)));
}

Verdict supports_epilogue(const Norm& norm, const KernelRequest& request) {
  if (norm.has_groups()) return supports_groups(request, 1);
  if (norm.epilogue.kind == NormEpilogue::plain) return Verdict::yes();
  if (Verdict verdict = supports_codes(request); !verdict) return verdict;
  if (norm.epilogue.kind == NormEpilogue::static_fp8 &&
      element_count(request.operands[norm.epilogue_tensor()]->shape) != Dim(1))
    return Verdict::no("there are several scales; one is supported");
  return Verdict::yes();
}

Verdict supports(const Norm& norm, const KernelRequest& request) {
  const std::optional<Meta>& x = request.operands[0];
  if (Verdict verdict = float_matrix(x, "x"); !verdict) return verdict;
  if (norm.adds)
    if (Verdict verdict = float_matrix(request.operands[1], "x_residual"); !verdict) return verdict;
  if (Verdict verdict = whole_loads(*x); !verdict) return verdict;
  if (Verdict verdict = supports_weight(request.operands[norm.weight()], x->dtype); !verdict) return verdict;
  return supports_epilogue(norm, request);
}

void set_epilogue(const Norm& norm, const KernelCall& call, RmsNormArguments& arguments) {
  if (norm.gives_scales()) arguments.places = scale_places(call.results[1]);
  if (norm.has_groups()) {
    arguments.group = static_cast<std::uint32_t>(call.attributes.at("group_size").integer());
    arguments.rule = group_rule(call, norm.epilogue_tensor());
  }
  if (norm.epilogue.kind == NormEpilogue::static_fp8)
    arguments.given_scale = call.operands[norm.epilogue_tensor()].as<float>();
  if (norm.is_of_token()) arguments.rule = token_rule(call, norm.epilogue_tensor());
}

// Checks the alignment of vector loads and stores: 16 bytes, and the codes of 16 bytes of x.
void check_vectors(const std::string& kernel, const Norm& norm, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& weight = call.operands[norm.weight()];
  const auto of_load = static_cast<std::uintptr_t>(elements_of_load(x.dtype));
  check_aligned(kernel.c_str(), "x", x.data, 16);
  if (norm.adds) {
    check_aligned(kernel.c_str(), "x_residual", call.operands[1].data, 16);
    check_aligned(kernel.c_str(), "the sum of x and x_residual", call.results.back().data, 16);
  }
  if (weight.present()) check_aligned(kernel.c_str(), "weight", weight.data, 16);
  check_aligned(kernel.c_str(), "the result", call.results[0].data,
                norm.epilogue.kind == NormEpilogue::plain ? 16 : of_load);
}

void run(const Norm& norm, Mathematics mathematics, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const std::string kernel = fmt::format("{}_{}_{}{}_{}", norm.front(), dtype_text(x.dtype), norm.epilogue.kernel,
                                         truncates(call.attributes) ? "_truncated" : "", ending_of(mathematics));
  check_sides(kernel, x);
  check_vectors(kernel, norm, call);
  const TensorView& weight = call.operands[norm.weight()];
  const Attribute& variance_size = call.attributes.at("variance_size");
  const std::int64_t columns = x.size[1];
  RmsNormArguments arguments{
      .x = x.data,
      .residual = norm.adds ? call.operands[1].data : nullptr,
      .residual_output = norm.adds ? call.results.back().data : nullptr,
      .weight = weight.data,
      .output = call.results[0].data,
      .epsilon = static_cast<float>(call.attributes.at("epsilon").real()),
      .columns = static_cast<std::uint32_t>(columns),
      .variance_columns = static_cast<std::uint32_t>(variance_size.is_none() ? columns : variance_size.integer()),
      .weight_is_wide = weight.present() && weight.dtype == DType::f32,
      .normalizes_rounded = norm.adds && call.attributes.at("intermediate").word() == "input_dtype"};
  set_epilogue(norm, call, arguments);
  run_call(kernel, plan_rows(x.size[0]), arguments, call);
}

}  // namespace

void add_rms_norm(KernelRegistry& registry, Mathematics mathematics) {
  for (const bool adds : {false, true})
    for (const EpilogueRow& epilogue : kEpilogues) {
      const Norm norm{adds, epilogue};
      registry.add({.op = norm.front() + epilogue.op,
                    .provider = provider_of(mathematics),
                    .supported = supported,
                    .supports = [norm](const KernelRequest& request) { return supports(norm, request); },
                    .vector_bytes = 16,
                    .run = [=](const KernelCall& call) { run(norm, mathematics, call); },
                    .note = "a block of 256 threads a row"});
    }
}

}  // namespace weft::cuda

KERNELS(cuda, rms_norm) { weft::cuda::add_rms_norm(registry, weft::cuda::Mathematics::device); }
