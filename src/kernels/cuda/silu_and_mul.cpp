// silu_and_mul, plain and followed by quantization with a given scale or to f4e2m1; device/silu_and_mul.cu has the
// kernels.

#include <array>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/emulator/run_call.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/row_launch.h"
#include "kernels/cuda/lib/two_forms.h"

namespace weft::cuda {
namespace {

enum class SiluEpilogue : std::uint8_t { plain, static_fp8, fp4 };

Verdict supports(SiluEpilogue epilogue, const KernelRequest& request) {
  const std::optional<Meta>& x = request.operands[0];
  if (Verdict verdict = float_matrix(x, "x"); !verdict) return verdict;
  const std::int64_t of_load = elements_of_load(x->dtype);
  const Dim& columns = x->shape.back();
  if (!columns.is_number() || columns.number() / 2 % of_load != 0)
    return Verdict::no(
        fmt::format("halves of rows of {} columns; multiples of {} are supported", columns.text(), of_load));
  if (epilogue != SiluEpilogue::static_fp8) return Verdict::yes();
  if (request.attributes.at("dtype").dtype() != DType::f8e4m3)
    return Verdict::no(
        fmt::format("codes are {}; f8e4m3 is supported", dtype_text(request.attributes.at("dtype").dtype())));
  if (element_count(request.operands[1]->shape) != Dim(1))
    return Verdict::no("there are several scales; one is supported");
  return Verdict::yes();
}

std::string kernel_name(SiluEpilogue epilogue, Mathematics mathematics, DType x, const Attributes& attributes) {
  if (epilogue == SiluEpilogue::plain)
    return fmt::format("silu_and_mul_{}_plain_{}", dtype_text(x), ending_of(mathematics));
  const bool rounds = attributes.at("intermediate").word() == "input_dtype";
  return fmt::format("silu_and_mul_{}_{}_{}_{}", dtype_text(x),
                     epilogue == SiluEpilogue::fp4 ? "f4e2m1" : "static_f8e4m3", rounds ? "rounded" : "wide",
                     ending_of(mathematics));
}

void run(SiluEpilogue epilogue, Mathematics mathematics, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const std::string kernel = kernel_name(epilogue, mathematics, x.dtype, call.attributes);
  check_sides(kernel, x);
  SiluAndMulArguments arguments{.x = x.data,
                                .output = call.results[0].data,
                                .rows = static_cast<std::uint32_t>(x.size[0]),
                                .columns = static_cast<std::uint32_t>(x.size[1] / 2)};
  if (epilogue != SiluEpilogue::plain) arguments.scale = call.operands[1].as<float>();
  if (epilogue == SiluEpilogue::fp4) arguments.group_scales = call.results[1].as<std::uint8_t>();
  const bool has_tiles = epilogue == SiluEpilogue::fp4 && call.attributes.at("swizzled_scales").boolean();
  const LaunchShape shape = plan_silu_and_mul(kernel, x.dtype, has_tiles, arguments);
  check_aligned(kernel.c_str(), "x", x.data, 16);
  check_aligned(kernel.c_str(), "the result", arguments.output, 16);
  run_call(kernel, shape, arguments, call);
}

struct SiluOp {
  SiluEpilogue epilogue;
  const char* op;
};
constexpr std::array kOps = {SiluOp{SiluEpilogue::plain, "silu_and_mul"},
                             SiluOp{SiluEpilogue::static_fp8, "silu_and_mul_static_scaled_fp8_quant"},
                             SiluOp{SiluEpilogue::fp4, "silu_and_mul_scaled_fp4_quant"}};

}  // namespace

void add_silu_and_mul(KernelRegistry& registry, Mathematics mathematics) {
  for (const SiluOp& row : kOps) {
    const SiluEpilogue epilogue = row.epilogue;
    registry.add({.op = row.op,
                  .provider = provider_of(mathematics),
                  .supported = supported,
                  .supports = [epilogue](const KernelRequest& request) { return supports(epilogue, request); },
                  .vector_bytes = 16,
                  .run = [=](const KernelCall& call) { run(epilogue, mathematics, call); },
                  .note = "16 bytes of gates and 16 of the other half a thread"});
  }
}

}  // namespace weft::cuda

KERNELS(cuda, silu_and_mul) { weft::cuda::add_silu_and_mul(registry, weft::cuda::Mathematics::device); }
