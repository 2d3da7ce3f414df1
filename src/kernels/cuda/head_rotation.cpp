// rotary_embedding, fused_qk_norm_rope, kv_cache_update and the ops that combine them; device/head_rotation.cu has the
// kernel. Positions and slots are computed by the runner and are not checked here: when a graph is replayed, they do
// not exist yet.

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/head_rotation_plan.h"
#include "kernels/cuda/lib/pages.h"
#include "kernels/cuda/lib/run_call.h"
#include "kernels/registry.h"

namespace weft::cuda {
namespace {

// The indices of an op's tensors among its operands; -1 if it has none.
struct RotationOp {
  const char* op;
  int query, key, value, positions, table, query_weight, key_weight, pages, slots;
};
constexpr std::array kOps = {
    RotationOp{"rotary_embedding", 1, 2, -1, 0, 3, -1, -1, -1, -1},
    RotationOp{"fused_qk_norm_rope", 1, 2, -1, 0, 5, 3, 4, -1, -1},
    RotationOp{"kv_cache_update", -1, 0, 1, -1, -1, -1, -1, 2, 3},
    RotationOp{"fused_rope_kv_cache_update", 1, 2, 3, 0, 4, -1, -1, 5, 6},
    RotationOp{"fused_qk_norm_rope_kv_cache_update", 1, 2, 3, 0, 6, 4, 5, 7, 8},
};

// Whether these are rows of heads that can be read in pairs: other strides are even, and the elements of a head are
// contiguous.
Verdict supports_heads(const std::optional<Meta>& meta, const char* name, DType dtype) {
  if (!meta || !meta->is_tensor() || !meta->packed.empty()) return Verdict::no(fmt::format("{} is no tensor", name));
  if (meta->dtype != DType::bf16 && meta->dtype != DType::f16 && meta->dtype != DType::f32)
    return Verdict::no(fmt::format("{} is of {}; bf16, f16 and f32 are supported", name, dtype_text(meta->dtype)));
  if (meta->dtype != dtype)
    return Verdict::no(fmt::format("{} is of {}, not {}", name, dtype_text(meta->dtype), dtype_text(dtype)));
  const Shape strides = meta->full_strides();
  for (std::size_t i = 0; i < meta->rank(); ++i) {
    if (meta->shape[i] == Dim(1)) continue;
    const bool is_last = i + 1 == meta->rank();
    if (!strides[i].is_number() || strides[i].number() >= kSideLimit ||
        (is_last ? strides[i] != Dim(1) : strides[i].number() % 2 != 0))
      return Verdict::no(fmt::format("{} is {}; contiguous heads at even strides are supported", name, meta->text()));
  }
  return Verdict::yes();
}

Verdict supports_rotation(const RotationOp& op, const KernelRequest& request, DType dtype) {
  const std::int64_t head_size = request.attributes.at("head_size").integer();
  const std::int64_t rotary_dim = request.attributes.at("rotary_dim").integer();
  if (head_size % 2 != 0) return Verdict::no(fmt::format("heads have {} columns; even numbers do", head_size));
  if (request.attributes.at("is_neox_style").boolean() && rotary_dim % 4 != 0)
    return Verdict::no(fmt::format("rotary_dim is {}; multiples of 4 are supported", rotary_dim));
  const std::optional<Meta>& table = request.operands[static_cast<std::size_t>(op.table)];
  if (Verdict verdict = supports_heads(table, "cos_sin_cache", table->dtype); !verdict) return verdict;
  const std::optional<Meta>& positions = request.operands[static_cast<std::size_t>(op.positions)];
  if (!positions->is_contiguous()) return Verdict::no("positions are not contiguous");
  for (const int at : {op.query_weight, op.key_weight}) {
    if (at < 0 || !request.operands[static_cast<std::size_t>(at)]) continue;
    const Meta& weight = *request.operands[static_cast<std::size_t>(at)];
    if (!weight.is_contiguous() || (weight.dtype != dtype && weight.dtype != DType::f32))
      return Verdict::no(
          fmt::format("weight is {}; contiguous f32 or {} is supported", weight.text(), dtype_text(dtype)));
  }
  return Verdict::yes();
}

Verdict supports(const RotationOp& op, const KernelRequest& request) {
  const auto operand = [&](int at) -> const std::optional<Meta>& {
    return request.operands[static_cast<std::size_t>(at)];
  };
  if (op.pages >= 0)
    if (Verdict verdict = supports_pages(operand(op.pages)->kv); !verdict) return verdict;
  const DType dtype = operand(op.key)->dtype;
  if (Verdict verdict = supports_heads(operand(op.key), "key", dtype); !verdict) return verdict;
  if (op.query >= 0)
    if (Verdict verdict = supports_heads(operand(op.query), "query", dtype); !verdict) return verdict;
  if (op.table >= 0)
    if (Verdict verdict = supports_rotation(op, request, dtype); !verdict) return verdict;
  if (op.pages < 0) return Verdict::yes();
  if (Verdict verdict = supports_heads(operand(op.value), "value", dtype); !verdict) return verdict;
  return operand(op.slots)->is_contiguous() ? Verdict::yes() : Verdict::no("slots are not contiguous");
}

void check_pairs(const char* kernel, const char* what, const TensorView& view) {
  check_aligned(kernel, what, view.data, static_cast<std::uintptr_t>(2 * dtype_info(view.dtype).block_bytes));
}

// [tokens, heads * head_size] or [tokens, heads, head_size].
HeadRows head_rows(const char* kernel, const char* what, const TensorView& view, std::int64_t head_size) {
  check_pairs(kernel, what, view);
  const bool has_heads = view.rank == 3;
  return {.x = view.data,
          .heads = static_cast<std::uint32_t>(has_heads ? view.size[1] : view.size[1] / head_size),
          .row_stride = static_cast<std::uint32_t>(view.stride[0]),
          .head_stride = static_cast<std::uint32_t>(has_heads ? view.stride[1] : head_size)};
}

void set_rotation(const char* kernel, const RotationOp& op, const KernelCall& call, HeadRotationArguments& arguments) {
  const auto operand = [&](int at) -> const TensorView& { return call.operands[static_cast<std::size_t>(at)]; };
  arguments.positions = operand(op.positions).as<std::int64_t>();
  const TensorView& table = operand(op.table);
  check_pairs(kernel, "cos_sin_cache", table);
  arguments.table = table.data;
  arguments.table_kind = kind_of(table.dtype);
  arguments.table_stride = static_cast<std::uint32_t>(table.stride[0]);
  arguments.rotary_dim = static_cast<std::uint32_t>(call.attributes.at("rotary_dim").integer());
  arguments.is_neox = call.attributes.at("is_neox_style").boolean();
  if (op.query_weight < 0) return;
  const TensorView &query_weight = operand(op.query_weight), &key_weight = operand(op.key_weight);
  const DType dtype = operand(op.key).dtype;
  for (const TensorView* weight : {&query_weight, &key_weight})
    if (weight->present()) check_pairs(kernel, "weight", *weight);
  arguments.normalizes = true;
  arguments.epsilon = static_cast<float>(call.attributes.at("epsilon").real());
  arguments.query_weight = query_weight.data;
  arguments.key_weight = key_weight.data;
  arguments.query_weight_is_wide = query_weight.present() && query_weight.dtype != dtype;
  arguments.key_weight_is_wide = key_weight.present() && key_weight.dtype != dtype;
}

void run(const RotationOp& op, const KernelCall& call) {
  const auto operand = [&](int at) -> const TensorView& { return call.operands[static_cast<std::size_t>(at)]; };
  const TensorView& key = operand(op.key);
  const std::string kernel = fmt::format("head_rotation_{}", dtype_text(key.dtype));
  const char* name = kernel.c_str();
  if (key.size[0] == 0) return;  // without tokens the pages do not change
  check_sides(kernel, key);
  const std::int64_t head_size = op.table < 0 ? key.size[2] : call.attributes.at("head_size").integer();
  HeadRotationArguments arguments{.tokens = static_cast<std::uint32_t>(key.size[0]),
                                  .head_size = static_cast<std::uint32_t>(head_size)};
  arguments.key = head_rows(name, "key", key, head_size);
  if (op.query >= 0) {
    check_sides(kernel, operand(op.query));
    arguments.query = head_rows(name, "query", operand(op.query), head_size);
    arguments.query_output = call.results[0].data;
    check_pairs(name, "the result", call.results[0]);
  }
  if (op.table >= 0) set_rotation(name, op, call, arguments);
  if (op.pages >= 0) {
    arguments.value = head_rows(name, "value", operand(op.value), head_size);
    arguments.slots = operand(op.slots).as<std::int64_t>();
    arguments.pages = pages_place(call.results.back());
  } else {
    arguments.key_output = call.results[1].data;
    check_pairs(name, "the result", call.results[1]);
  }
  arguments.heads = divisor_of(arguments.query.heads + arguments.key.heads + arguments.value.heads);
  const HeadRotationPlan plan = plan_head_rotation(key.dtype, arguments);
  run_call(plan.kernel, plan.shape, arguments, call);
}

}  // namespace
}  // namespace weft::cuda

KERNELS(cuda, head_rotation) {
  using namespace weft::cuda;
  for (const RotationOp& op : kOps) {
    std::vector<int> writes;
    if (op.pages >= 0) writes.push_back(op.pages);
    registry.add({.op = op.op,
                  .provider = "cuda",
                  .supported = supported,
                  .supports = [&op](const weft::KernelRequest& request) { return supports(op, request); },
                  .writes = writes,
                  .vector_bytes = 8,  // pairs of f32; wider vectors if all tensors are aligned to them
                  .run = [&op](const weft::KernelCall& call) { run(op, call); },
                  .note = "16 bytes or two columns a lane, 64 columns of a head at a time"});
  }
}
