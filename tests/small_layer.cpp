#include "tests/small_layer.h"

#include <cstring>

#include "ir/parse.h"
#include "tensor/batch.h"

namespace weft {

std::shared_ptr<Graph> small_layer(const Context& context) {
  return parse_graph(R"(
graph layer(donated %x: f32[s0, 32], donated %r: f32[s0, 32], %positions: i64[s0], %slots: i64[s0], %batch: batch,
    donated %kv: kv[f32, block=4, heads=1, head_dim=16], param %norm: f32[32], param %qkv: f32[64, 32],
    param %table: f32[64, 16], param %out: f32[32, 32], param %up: f32[64, 32], param %down: f32[32, 32]) stage=traced {
  %h, %s = fused_add_rms_norm.maybe_inplace(%x, %r, %norm, epsilon=1e-05)
  %p = linear(%h, %qkv)
  %q = slice(%p, dim=1, start=0, end=32)
  %k = slice(%p, dim=1, start=32, end=48)
  %v = slice(%p, dim=1, start=48, end=64)
  %q1, %k1 = rotary_embedding(%positions, %q, %k, %table, head_size=16, rotary_dim=16)
  %k2 = reshape(%k1, shape=[s0, 1, 16])
  %v2 = reshape(%v, shape=[s0, 1, 16])
  %kv1 = kv_cache_update(%k2, %v2, %kv, %slots)
  %q2 = reshape(%q1, shape=[s0, 2, 16])
  %a = attention(%q2, %kv1, %batch, scale=0.25)
  %a2 = reshape(%a, shape=[s0, 32])
  %o = linear(%a2, %out)
  %h2, %s2 = fused_add_rms_norm.maybe_inplace(%o, %s, %norm, epsilon=1e-06)
  %u = linear(%h2, %up)
  %g = silu_and_mul(%u)
  %y = linear(%g, %down)
  return %y, %s2, %kv1
}
)",
                     context.ops);
}

Tensor LayerInputs::copy(std::size_t index) const {
  const Tensor& tensor = tensors[index];
  if (tensor.meta.kind == MetaKind::batch) return tensor;
  Tensor fresh = tensor;
  fresh.storage = Storage::allocate(tensor.storage->bytes());
  std::memcpy(fresh.storage->data(), tensor.storage->data(), static_cast<std::size_t>(tensor.storage->bytes()));
  return fresh;
}

std::vector<Tensor> LayerInputs::copies() const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < tensors.size(); ++i) all.push_back(copy(i));
  return all;
}

LayerInputs layer_inputs(const Graph& graph, int rows) {
  LayerInputs inputs;
  int block = 1;
  for (const auto& input : graph.inputs())
    if (input->meta.kind == MetaKind::kv) block = input->meta.kv.block;
  for (const auto& input : graph.inputs()) {
    const Meta& meta = input->meta;
    if (meta.kind == MetaKind::batch) {
      inputs.tensors.push_back(make_batch({{rows, rows}}, block));
      continue;
    }
    if (meta.kind == MetaKind::kv) {
      inputs.tensors.push_back(make_sample_tensor(SampleTensor::pages(input->name, meta.kv, 4), DType::f32, 3));
      continue;
    }
    std::vector<std::int64_t> shape;
    for (const Dim& dim : meta.shape) shape.push_back(dim.is_number() ? dim.number() : rows);
    const bool indices = meta.dtype == DType::i64;
    Tensor tensor = make_sample_tensor({input->name, shape, meta.dtype, indices ? Fill::zero : Fill::normal},
                                       DType::f32, inputs.tensors.size() + 1);
    if (indices)
      for (int i = 0; i < rows; ++i) tensor.as<std::int64_t>()[i] = i;
    inputs.tensors.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace weft
