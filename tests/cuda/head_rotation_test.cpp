// Rotary embedding, normalization of heads and KV pages in one kernel: the meanings' bits on heads of real models, on
// columns of one product, and on slots that leave tokens out; by vectors and by pairs of columns.

#include <cstring>

#include <gtest/gtest.h>

#include "compiler/run/sample_call.h"
#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/head_rotation_plan.h"
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

// Rows of the same elements as columns of a matrix that is so much wider.
Tensor as_columns(const Tensor& tensor, std::int64_t more) {
  const std::int64_t rows = tensor.meta.shape[0].number(), bytes = tensor.meta.bytes().number() / rows;
  const std::int64_t element = dtype_info(tensor.meta.dtype).block_bytes, width = bytes / element + more;
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
          const std::vector<Tensor> wanted = meaning_of(*context, op, call.operands, call.attributes);
          // Whole vectors of either type; and rows that only pairs divide.
          for (const std::int64_t more : {24, 2}) {
            std::vector<Tensor> operands = call.operands;
            for (Tensor& operand : operands)
              if (operand.meta.is_tensor() && operand.meta.dtype == dtype && operand.meta.rank() > 1)
                operand = as_columns(operand, more);
            EXPECT_EQ(difference_of_results(wanted, by_cuda(*context, op, operands, call.attributes)), "")
                << op << " " << more;
          }
          ++taken;
        }
    // Heads of 6 columns have no pages.
    EXPECT_EQ(taken, is_updating(op) ? 24 : 30) << op;
  }
}

// A launch of 5 tokens without an op: two query heads and one each of key and value, next to each other in a row.
struct RotationLaunch {
  explicit RotationLaunch(DType x, std::int64_t head_size = 64)
      : rows(Tensor::empty(Meta::tensor(x, {5, 4 * head_size}))),
        output(Tensor::empty(Meta::tensor(x, {5, 2 * head_size}))),
        pages(Tensor::empty(Meta::tensor(x, {2, 2, 4, head_size}))),
        table(Tensor::empty(Meta::tensor(x, {5, head_size}))) {
    const auto columns = static_cast<std::uint32_t>(head_size);
    const std::int64_t bytes = dtype_info(x).block_bytes * head_size;
    const auto heads_at = [&](std::int64_t first, std::uint32_t count) {
      return cuda::HeadRows{rows.data() + first * bytes, count, 4 * columns, columns};
    };
    const cuda::ElementKind kind = x == DType::f32 ? cuda::ElementKind::f32 : cuda::ElementKind::bf16;
    arguments = {.query = heads_at(0, 2),
                 .key = heads_at(2, 1),
                 .value = heads_at(3, 1),
                 .query_output = output.data(),
                 .positions = numbers,
                 .table = table.data(),
                 .slots = numbers,
                 .pages = {pages.data(), kind, cuda::divisor_of(4), 1, columns},
                 .tokens = 5,
                 .head_size = columns,
                 .rotary_dim = columns,
                 .table_stride = columns,
                 .table_kind = kind,
                 .is_neox = true,
                 .heads = cuda::divisor_of(4)};
  }

  static constexpr std::int64_t numbers[5] = {0, 1, 2, 3, 4};
  Tensor rows, output, pages, table;
  cuda::HeadRotationArguments arguments;
};

TEST(HeadRotation, TakesVectorsWhereAllDividesIntoThemAndPairsElsewhere) {
  struct Case {
    const char* what;
    void (*change)(cuda::HeadRotationArguments&);
    const char* bf16;
    const char* f32;
  };
  const char* vectors = "";
  const char* pairs = "_pairs";
  const auto moved = [](const void* address, int bytes) -> const void* {
    return static_cast<const std::byte*>(address) + bytes;
  };
  static const auto kMoved = moved;
  const Case cases[] = {
      {"as it is", [](auto&) {}, vectors, vectors},
      {"heads of 4 columns more", [](auto& one) { one.head_size += 4; }, pairs, vectors},
      {"half of a quarter turns", [](auto& one) { one.rotary_dim = 8; }, pairs, vectors},
      {"of neighbours, too", [](auto& one) { one.rotary_dim = 8, one.is_neox = false; }, vectors, vectors},
      {"4 neighbours turn", [](auto& one) { one.rotary_dim = 4, one.is_neox = false; }, pairs, vectors},
      {"rows of 4 columns more", [](auto& one) { one.query.row_stride += 4; }, pairs, vectors},
      {"of one token", [](auto& one) { one.query.row_stride += 2, one.tokens = 1; }, vectors, vectors},
      {"heads 2 columns apart", [](auto& one) { one.query.head_stride += 2; }, pairs, pairs},
      {"where there is one", [](auto& one) { one.value.head_stride += 2; }, vectors, vectors},
      {"angles between vectors", [](auto& one) { one.table_stride += 4; }, pairs, vectors},
      {"keys 8 bytes further on", [](auto& one) { one.key.x = kMoved(one.key.x, 8); }, pairs, pairs},
      {"weights 8 bytes further on", [](auto& one) { one.key_weight = kMoved(one.table, 8); }, pairs, pairs},
      {"angles 8 bytes further on", [](auto& one) { one.table = kMoved(one.table, 8); }, pairs, pairs},
  };
  for (const auto& [what, change, bf16, f32] : cases)
    for (const DType x : {DType::bf16, DType::f32}) {
      RotationLaunch launch(x);
      change(launch.arguments);
      const cuda::HeadRotationPlan plan = cuda::plan_head_rotation(x, launch.arguments);
      EXPECT_EQ(plan.kernel, fmt::format("head_rotation_{}{}", dtype_text(x), x == DType::f32 ? f32 : bf16)) << what;
      // 4 heads a token; 128 threads take 16 of them by vectors of bf16, 8 by those of f32, 4 by pairs.
      const bool by_pairs = plan.kernel.ends_with(pairs);
      const std::uint32_t heads = 4 * launch.arguments.tokens, of_block = by_pairs ? 4 : x == DType::f32 ? 8 : 16;
      EXPECT_EQ(plan.shape.blocks, (heads + of_block - 1) / of_block) << what;
    }
}

// 16 contiguous bytes for each lane, except for K, which is stored element by element.
TEST(HeadRotation, MovesNoSectorThatItDoesNotUse) {
  for (const DType x : {DType::bf16, DType::f32})
    for (const bool neox : {true, false})
      for (const std::int64_t head_size : {64, 128}) {
        RotationLaunch launch(x, head_size);
        launch.arguments.is_neox = neox;
        cuda::MemoryMap memory;
        const auto allow = [&](const char* name, Tensor& tensor, bool writes) {
          const auto bytes = static_cast<std::size_t>(tensor.meta.bytes().number());
          writes ? memory.allow_writing(name, tensor.data(), bytes) : memory.allow_reading(name, tensor.data(), bytes);
        };
        allow("x", launch.rows, false);
        allow("angles", launch.table, false);
        allow("output", launch.output, true);
        allow("pages", launch.pages, true);
        memory.allow_reading("numbers", launch.numbers, sizeof launch.numbers);
        const cuda::HeadRotationPlan plan = cuda::plan_head_rotation(x, launch.arguments);
        cuda::Emulator emulator({.measure = true});
        emulator.run(cuda::emulated_kernel(plan.kernel), plan.shape, &launch.arguments, memory);
        std::int64_t loaded = 0, stored = 0;
        for (const cuda::AccessTraffic& access : emulator.traffic()) {
          // The sectors of a token's numbers and of a key's columns contain other data, too.
          if (access.bytes == access.requests * 8 || access.sectors * 32 > 2 * access.bytes) continue;
          EXPECT_EQ(access.sectors * 32, access.bytes) << access.place << " " << plan.kernel << " " << head_size;
          (access.writes ? stored : loaded) += access.bytes;
        }
        EXPECT_EQ(memory.unwritten("output"), 0u);
        EXPECT_GE(loaded, 5 * 4 * head_size * dtype_info(x).block_bytes);
        EXPECT_EQ(stored, 5 * 3 * head_size * dtype_info(x).block_bytes);
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
