// Rotary embedding, normalization of heads and KV pages in one kernel: the meanings' bits on heads of real models, on
// columns of one product, and on slots that leave tokens out.

#include <cstring>

#include <gtest/gtest.h>

#include "compiler/sample_call.h"
#include "tests/cuda/cuda_context.h"
#include "tests/tensor/random_source.h"
#include "tests/thrown_message.h"

namespace weft::head_rotation_test {

struct Heads {
  std::int64_t query, key, head_size, rotary_dim;
};
constexpr Heads kHeads[] = {{9, 3, 64, 64}, {4, 2, 128, 128}, {2, 1, 80, 32}, {2, 2, 256, 128}, {1, 1, 6, 4}};
constexpr std::int64_t kTokens = 6;

bool is_updating(const std::string& op) { return op.find("update") != std::string::npos; }

// The op's own sample with other heads; 16-bit pages.
Sample sample_of(const Context& context, const std::string& op, const Heads& heads, bool neox, DType pages) {
  constexpr std::int64_t kBlock = 4;
  Sample sample;
  for (const Parameter& parameter : context.ops.at(op).schema.parameters) {
    const std::string& name = parameter.name;
    if (name == "positions") sample.tensors.push_back({name, {kTokens}, DType::i64, Fill::indices, 40});
    if (name == "query") sample.tensors.push_back({name, {kTokens, heads.query * heads.head_size}});
    if (name == "key" && op != "kv_cache_update")
      sample.tensors.push_back({name, {kTokens, heads.key * heads.head_size}});
    if ((name == "key" && op == "kv_cache_update") || name == "value")
      sample.tensors.push_back({name, {kTokens, heads.key, heads.head_size}});
    if (name == "query_weight") sample.tensors.push_back({name, {heads.head_size}});
    if (name == "key_weight") sample.tensors.push_back({name, {heads.head_size}, DType::f32});
    if (name == "cos_sin_cache") sample.tensors.push_back({name, {40, heads.rotary_dim}, DType::f32});
    if (name == "kv")
      sample.tensors.push_back(SampleTensor::pages(
          name, {.dtype = pages, .block = kBlock, .heads = heads.key, .head_dim = heads.head_size}, 2));
    if (name == "slots") sample.tensors.push_back({name, {kTokens}, DType::i64, Fill::indices});
    if (name == "epsilon") sample.attributes.emplace_back(name, 1e-6);
    if (name == "head_size") sample.attributes.emplace_back(name, heads.head_size);
    if (name == "rotary_dim") sample.attributes.emplace_back(name, heads.rotary_dim);
    if (name == "is_neox_style") sample.attributes.emplace_back(name, neox);
  }
  return sample;
}

// Rows of the same elements as columns of a wider matrix.
Tensor as_columns(const Tensor& tensor) {
  const std::int64_t rows = tensor.meta.shape[0].number(), bytes = tensor.meta.bytes().number() / rows;
  const std::int64_t element = dtype_info(tensor.meta.dtype).block_bytes, width = bytes / element + 24;
  Tensor wide = Tensor::empty(Meta::tensor(tensor.meta.dtype, {rows, width}));
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(wide.data() + row * width * element, tensor.data() + row * bytes, static_cast<std::size_t>(bytes));
  Shape strides = tensor.meta.full_strides();
  strides[0] = width;
  wide.meta = Meta::strided(tensor.meta.dtype, tensor.meta.shape, strides);
  return wide;
}

constexpr const char* kOps[] = {"rotary_embedding", "fused_qk_norm_rope", "kv_cache_update",
                                "fused_rope_kv_cache_update", "fused_qk_norm_rope_kv_cache_update"};

TEST(HeadRotation, HasTheBitsOfTheMeaningForHeadsOfAnySize) {
  const auto context = cuda_context();
  for (const std::string op : kOps) {
    int taken = 0;
    for (const Heads& heads : kHeads)
      for (const bool neox : {true, false})
        for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
          const DType pages = dtype == DType::f16 ? DType::bf16 : DType::f16;
          SampleCall call = make_sample_call(context->ops.at(op), sample_of(*context, op, heads, neox, pages), dtype);
          if (!supports_of_cuda(*context, op, call.operands, call.attributes)) continue;
          SCOPED_TRACE(call.text);
          // Every other token is left out.
          const int slots = context->ops.at(op).schema.parameter_index("slots");
          if (slots >= 0)
            for (std::int64_t i = 1; i < kTokens; i += 2)
              call.operands[static_cast<std::size_t>(slots)].as<std::int64_t>()[i] = -1;
          for (Tensor& operand : call.operands)
            if (operand.meta.is_tensor() && operand.meta.dtype == dtype && operand.meta.rank() > 1)
              operand = as_columns(operand);
          const std::vector<Tensor> wanted = meaning_of(*context, op, call.operands, call.attributes);
          EXPECT_EQ(difference_of_results(wanted, by_cuda(*context, op, call.operands, call.attributes)), "") << op;
          ++taken;
        }
    // Heads of 6 columns have no pages.
    EXPECT_EQ(taken, is_updating(op) ? 24 : 30) << op;
  }
}

TEST(HeadRotation, SaysWhyItRefuses) {
  const auto context = cuda_context();
  const auto reason = [&](const char* op, const Heads& heads) {
    const SampleCall call =
        make_sample_call(context->ops.at(op), sample_of(*context, op, heads, true, DType::f16), DType::bf16);
    return supports_of_cuda(*context, op, call.operands, call.attributes).reason();
  };
  EXPECT_NE(reason("rotary_embedding", {1, 1, 16, 10}).find("rotary_dim is 10"), std::string::npos);
  EXPECT_NE(reason("rotary_embedding", {2, 1, 15, 8}).find("contiguous heads at even strides"), std::string::npos);
  EXPECT_NE(reason("kv_cache_update", {1, 1, 12, 8}).find("head_dim is 12"), std::string::npos);
}

// A slot beyond the pages, or a position beyond the table, is outside the memory that the launch was given.
TEST(HeadRotation, TouchesNothingBeyondPagesAndTable) {
  const auto context = cuda_context();
  const std::string op = "fused_rope_kv_cache_update";
  const auto fault = [&](const char* name, std::int64_t number) {
    SampleCall call =
        make_sample_call(context->ops.at(op), sample_of(*context, op, kHeads[0], true, DType::f16), DType::bf16);
    const int at = context->ops.at(op).schema.parameter_index(name);
    call.operands[static_cast<std::size_t>(at)].as<std::int64_t>()[2] = number;
    return message_of<DeviceError>([&] { by_cuda(*context, op, call.operands, call.attributes); });
  };
  EXPECT_NE(fault("positions", 1 << 20).find("reads memory that was not given to it"), std::string::npos);
  EXPECT_NE(fault("slots", 1 << 20).find("writes memory that was not given to it"), std::string::npos);
}

}  // namespace weft::head_rotation_test
