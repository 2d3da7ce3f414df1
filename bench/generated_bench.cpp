// Generated functions beside the kernels of provider cpu, one op a graph: a replay of one step.
//
//   generated_bench [--benchmark_filter=.*] [--benchmark_repetitions=5]
//
// Names are op/dtype/rows/columns/provider; one thread. What computes by heads has 64 of 64 columns, 8 for keys and
// values, and pages of 16 tokens in f16; into these the kernel of kv_cache_update puts rows behind generated code.
// WEFT_CPU_FEATURES is the ceiling as for the program. On a shared machine take the best of several repetitions.

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "builtin/context.h"
#include "compiler/pipeline.h"
#include "ir/parse.h"
#include "runtime/replay.h"
#include "tensor/convert.h"

namespace weft {
namespace {

// What stands before a quantizer in an op's name, and behind it; {0} is the columns of a row, {1} the dtype, {2} twice
// as many columns.
struct Part {
  const char* name;
  const char* operands;
  const char* arguments;
  const char* attributes;
  int results;
};

constexpr Part kHeads[] = {
    {"", "%x: {1}[s0, {0}]", "%x", "", 0},
    {"silu_and_mul", "%x: {1}[s0, {2}]", "%x", "", 0},
    {"gelu_and_mul", "%x: {1}[s0, {2}]", "%x", "", 0},
    {"gelu_tanh_and_mul", "%x: {1}[s0, {2}]", "%x", "", 0},
    {"rms_norm", "%x: {1}[s0, {0}], %w: {1}[{0}]", "%x, %w", ", epsilon=1e-05", 0},
    {"fused_add_rms_norm", "%x: {1}[s0, {0}], %r: {1}[s0, {0}], %w: {1}[{0}]", "%x, %r, %w", ", epsilon=1e-05", 1},
};

constexpr Part kEpilogues[] = {
    {"", "", "", "", 1},
    {"per_token_group_quant_int8", "", "", ", group_size=32", 2},
    {"per_token_group_quant_fp8", "", "", ", group_size=64", 2},
    {"dynamic_per_token_scaled_fp8_quant", "", "", "", 2},
    {"dynamic_per_token_scaled_int8_quant", "", "", "", 2},
    {"static_scaled_fp8_quant", ", %s: f32[1]", ", %s", "", 1},
    {"scaled_fp4_quant", ", %s: f32[1]", ", %s", ", swizzled_scales=false", 2},
};

struct BenchedOp {
  std::string name, operands, arguments;
  int results;
  bool is_by_heads = false;  // of one width, whatever {0} is
};

struct RowSize {
  std::int64_t rows, columns;
  std::string text;  // of the columns
};

std::vector<RowSize> sizes_of(const BenchedOp& op) {
  if (op.is_by_heads) return {{1, 4096, "64x64"}, {512, 4096, "64x64"}};
  return {{1, 576, "576"}, {512, 576, "576"}, {512, 4096, "4096"}};
}

// What rotates heads, with their norms before it or not, and the pages behind it or not.
BenchedOp rotation(const char* name, bool has_norms, bool puts_into_pages) {
  BenchedOp op{.name = name, .results = 2, .is_by_heads = true};
  op.operands = "%positions: i64[s0], %q: {1}[s0, 4096], %k: {1}[s0, 512], %table: f32[4096, 64]";
  op.arguments = "%positions, %q, %k";
  if (puts_into_pages) {
    op.operands += ", %v: {1}[s0, 8, 64], donated %kv: kv[f16, block=16, heads=8, head_dim=64], %slots: i64[s0]";
    op.arguments += ", %v";
  }
  if (has_norms) {
    op.operands += ", %qw: {1}[64], %kw: {1}[64]";
    op.arguments += ", %qw, %kw";
  }
  op.arguments += ", %table";
  if (puts_into_pages) op.arguments += ", %kv, %slots";
  if (has_norms) op.arguments += ", epsilon=1e-05";
  op.arguments += ", head_size=64, rotary_dim=64";
  return op;
}

BenchedOp op_of(const Part& head, const Part& epilogue) {
  const char* between = *head.name != 0 && *epilogue.name != 0 ? "_" : "";
  return {std::string(head.name) + between + epilogue.name, std::string(head.operands) + epilogue.operands,
          std::string(head.arguments) + epilogue.arguments + head.attributes + epilogue.attributes,
          head.results + epilogue.results};
}

std::vector<BenchedOp> benched_ops() {
  std::vector<BenchedOp> ops;
  for (const Part& head : kHeads)
    for (const Part& epilogue : kEpilogues)
      if (BenchedOp op = op_of(head, epilogue); !op.name.empty()) ops.push_back(std::move(op));
  ops.push_back({"rms_norm", "%x: {1}[s0, 64, 64], %w: {1}[64]", "%x, %w, epsilon=1e-05", 1, true});
  ops.push_back(rotation("rotary_embedding", false, false));
  ops.push_back(rotation("fused_rope_kv_cache_update", false, true));
  ops.push_back(rotation("fused_qk_norm_rope", true, false));
  ops.push_back(rotation("fused_qk_norm_rope_kv_cache_update", true, true));
  ops.push_back({"softmax", "%x: {1}[s0, {0}]", "%x", 1});
  ops.push_back({"add", "%x: {1}[s0, {0}], %y: {1}[s0, {0}]", "%x, %y", 1});
  ops.push_back({"mul", "%x: {1}[s0, {0}], %y: {1}[s0, {0}]", "%x, %y", 1});
  return ops;
}

std::string graph_text(const BenchedOp& op, const std::string& dtype, std::int64_t columns) {
  const std::string operands = fmt::format(fmt::runtime(op.operands), columns, dtype, 2 * columns);
  const std::string results = op.results == 3 ? "%a, %b, %c" : op.results == 2 ? "%a, %b" : "%a";
  return fmt::format("graph g({}) stage=pure where s0 in [1, 4096] {{\n  {} = {}({})\n  return {}\n}}\n", operands,
                     results, op.name, op.arguments, results);
}

// Integers are numbers of rows, each its own; pages are as many as the rows take.
Tensor operand_of(Meta meta, std::int64_t rows) {
  if (!meta.is_tensor()) return Tensor::empty(meta, rows / meta.kv.block + 1);
  if (!meta.shape[0].is_number()) meta.shape[0] = rows;
  const Tensor tensor = Tensor::empty(meta);
  const std::int64_t count = element_count(meta.shape).number();
  for (std::int64_t k = 0; k < count; ++k)
    if (meta.dtype == DType::i64)
      reinterpret_cast<std::int64_t*>(tensor.data())[k] = k;
    else
      store_float(meta.dtype, tensor.data(), k, 2.0f - static_cast<float>(k * 7919 % 2003) / 500.0f);
  return tensor;
}

void run_op(benchmark::State& state, const BenchedOp& op, const std::string& dtype, std::int64_t rows,
            std::int64_t columns, const std::string& provider) {
  Options options;
  options.threads = 1;
  if (provider == "cpu") options.backend = "eager";
  if (const char* ceiling = std::getenv("WEFT_CPU_FEATURES")) options.cpu_features = ceiling;
  auto context = make_context(std::move(options));
  for (const auto& [name, known] : context->ops.all())
    if (!known.is_primitive() && provider == "native") context->priorities.set(name, {"native"});
  auto graph = parse_graph(graph_text(op, dtype, columns), context->ops);
  std::vector<Meta> metas;
  for (const auto& input : graph->inputs()) metas.push_back(input->meta);
  PassRunnerOptions passes;
  passes.fuse = false;
  Replay replay(compile(*graph, *context, {1, 4096}, passes).plan, *context->threads);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    const Tensor tensor = operand_of(metas[i], rows);
    bytes += tensor.meta.is_tensor() ? tensor.meta.bytes().number() : 0;
    replay.bind(i, tensor);
  }
  for (auto _ : state) replay.run();
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  using namespace weft;
  for (const BenchedOp& op : benched_ops())
    for (const char* dtype : {"f32", "bf16"})
      for (const RowSize& size : sizes_of(op))
        for (const char* provider : {"cpu", "native"})
          benchmark::RegisterBenchmark(
              fmt::format("{}/{}/{}/{}/{}", op.name, dtype, size.rows, size.text, provider).c_str(),
              [=](benchmark::State& state) { run_op(state, op, dtype, size.rows, size.columns, provider); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
