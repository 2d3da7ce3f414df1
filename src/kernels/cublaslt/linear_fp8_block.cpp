// linear_fp8_block by cuBLASLt, for groups of 128 and blocks of 128 x 128. The scales must have the layout that the
// library reads. Those of x are stored group by group, as per_token_group_quant_fp8 returns them with
// column_major_scales and tma_aligned_scales. Those of the weight are in rows that are padded to a multiple of four.
//
// The number of rows is padded to a multiple of four, too, in scratch. The padding may contain anything. The padding of
// the last group's scales is the memory after them in the arena, where everything is at multiples of 64 bytes.

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cublaslt/lib/product_call.h"
#include "kernels/registry.h"

namespace weft::cublaslt {
namespace {

Dim whole_steps(const Dim& count) { return align(count, kScaleStep); }

Verdict takes_blocks(const Attributes& attributes) {
  const AttributeList& block = attributes.at("block").list();
  if (block[0].integer() == kScaleBlock && block[1].integer() == kScaleBlock) return Verdict::yes();
  return Verdict::no(
      fmt::format("takes blocks of {0} x {0}, not {1} x {2}", kScaleBlock, block[0].integer(), block[1].integer()));
}

Verdict takes_scales(const Meta& x_scale, const Meta& weight_scale) {
  const Shape x_strides = x_scale.full_strides(), weight_strides = weight_scale.full_strides();
  const Dim &rows = x_scale.shape[0], &groups = x_scale.shape[1];
  const bool is_by_groups =
      (rows == Dim(1) || x_strides[0] == Dim(1)) && (groups == Dim(1) || x_strides[1] == whole_steps(rows));
  if (!is_by_groups)
    return Verdict::no(
        fmt::format("wants scales of x group by group, {} apart, not {}", whole_steps(rows).text(), x_scale.text()));
  const bool is_in_steps = (groups == Dim(1) || weight_strides[1] == Dim(1)) &&
                           (weight_scale.shape[0] == Dim(1) || weight_strides[0] == whole_steps(groups));
  if (is_in_steps) return Verdict::yes();
  return Verdict::no(fmt::format("wants scales of the weight in rows {} apart, not {}", whole_steps(groups).text(),
                                 weight_scale.text()));
}

Verdict supports(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[2];
  if (const Verdict blocks = takes_blocks(request.attributes); !blocks) return blocks;
  if (const Verdict codes = takes_codes(x, weight, std::nullopt, request.results[0]); !codes) return codes;
  if (!x.is_contiguous()) return Verdict::no("wants rows one after another, not " + x.text());
  if (request.operands[4]) return Verdict::no("takes no bias with scales of blocks");
  return takes_scales(*request.operands[1], *request.operands[3]);
}

// padded_product_bytes and one line, since a part of them is rounded up to lines.
Dim scratch_bytes(const KernelRequest& request) {
  constexpr std::int64_t kLine = 256;
  const Meta &x = *request.operands[0], &result = request.results[0];
  const std::int64_t row_bytes =
      bytes_of(x.dtype, x.shape[1].number()) + bytes_of(result.dtype, result.shape[1].number());
  if (x.shape[0].is_number() && x.shape[0].number() % kScaleStep == 0) return Dim(0);
  return whole_steps(x.shape[0]) * Dim(row_bytes) + Dim(kLine);
}

void run(const KernelCall& call) {
  LibraryProduct product = product_of(call.operands[0], call.operands[2], call.operands[4], call.results[0]);
  product.x_scale = call.operands[1].as<const float>();
  product.weight_scale = call.operands[3].as<const float>();
  product.scales = ProductScales::blocks;
  product.scratch = call.scratch.data();
  product.x_stride = product.depth;
  CHECK(product.rows % kScaleStep == 0 || std::ssize(call.scratch) >= padded_product_bytes(product),
        "{} takes {} bytes of scratch, not {}", product_text(product), padded_product_bytes(product),
        call.scratch.size());
  run_product(product, call);
}

}  // namespace
}  // namespace weft::cublaslt

KERNELS(cublaslt, linear_fp8_block) {
  using namespace weft::cublaslt;
  registry.add(
      {.op = "linear_fp8_block",
       .provider = "cublaslt",
       .supported = [](const DeviceDescription& device) { return multiplies_codes(device, ProductScales::blocks); },
       .supports = supports,
       .batch_invariant = false,
       .launches = true,
       .vector_bytes = kVectorBytes,
       .scratch_bytes = scratch_bytes,
       .run = run,
       .note = "cublasLtMatmul of fp8 codes in blocks of 128 x 128; on fake-cuda the host in its place"});
}
