// Generated functions beside the kernels of provider cpu, one op a graph: a replay of one step.
//
//   generated_bench [--benchmark_filter=.*] [--benchmark_repetitions=5]
//
// Names are op/dtype/rows/columns/provider; one thread. WEFT_CPU_FEATURES is the ceiling as for the program. On a
// shared machine take the best of several repetitions.

#include <cstdlib>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "builtin/context.h"
#include "compiler/pipeline.h"
#include "ir/parse.h"
#include "runtime/replay.h"
#include "tensor/convert.h"

namespace weft {
namespace {

struct BenchedOp {
  const char* name;
  const char* operands;  // of rows of {0} columns or of {2}, twice as many; {1} is their dtype
  const char* arguments;
  int results;
};

constexpr const char* kX = "%x: {1}[s0, {0}]";
constexpr const char* kHalves = "%x: {1}[s0, {2}]";
constexpr const char* kNormed = "%x: {1}[s0, {0}], %w: {1}[{0}]";
constexpr const char* kAdded = "%x: {1}[s0, {0}], %r: {1}[s0, {0}], %w: {1}[{0}]";

constexpr BenchedOp kOps[] = {
    {"silu_and_mul", kHalves, "%x", 1},
    {"gelu_and_mul", kHalves, "%x", 1},
    {"rms_norm", kNormed, "%x, %w, epsilon=1e-05", 1},
    {"fused_add_rms_norm", kAdded, "%x, %r, %w, epsilon=1e-05", 2},
    {"per_token_group_quant_int8", kX, "%x, group_size=32", 2},
    {"per_token_group_quant_fp8", kX, "%x, group_size=64", 2},
    {"rms_norm_per_token_group_quant_int8", kNormed, "%x, %w, epsilon=1e-05, group_size=32", 2},
    {"rms_norm_per_token_group_quant_fp8", kNormed, "%x, %w, epsilon=1e-05, group_size=64", 2},
    {"fused_add_rms_norm_per_token_group_quant_int8", kAdded, "%x, %r, %w, epsilon=1e-05, group_size=32", 3},
    {"fused_add_rms_norm_per_token_group_quant_fp8", kAdded, "%x, %r, %w, epsilon=1e-05, group_size=64", 3},
    {"silu_and_mul_per_token_group_quant_int8", kHalves, "%x, group_size=32", 2},
    {"silu_and_mul_per_token_group_quant_fp8", kHalves, "%x, group_size=64", 2},
    {"dynamic_per_token_scaled_fp8_quant", kX, "%x", 2},
    {"dynamic_per_token_scaled_int8_quant", kX, "%x", 2},
    {"rms_norm_dynamic_per_token_scaled_fp8_quant", kNormed, "%x, %w, epsilon=1e-05", 2},
    {"fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant", kAdded, "%x, %r, %w, epsilon=1e-05", 3},
    {"fused_add_rms_norm_dynamic_per_token_scaled_int8_quant", kAdded, "%x, %r, %w, epsilon=1e-05", 3},
    {"silu_and_mul_dynamic_per_token_scaled_fp8_quant", kHalves, "%x", 2},
    {"static_scaled_fp8_quant", "%x: {1}[s0, {0}], %s: f32[1]", "%x, %s", 1},
    {"silu_and_mul_static_scaled_fp8_quant", "%x: {1}[s0, {2}], %s: f32[1]", "%x, %s", 1},
};

std::string graph_text(const BenchedOp& op, const std::string& dtype, std::int64_t columns) {
  const std::string operands = fmt::format(fmt::runtime(op.operands), columns, dtype, 2 * columns);
  const std::string results = op.results == 3 ? "%a, %b, %c" : op.results == 2 ? "%a, %b" : "%a";
  return fmt::format("graph g({}) stage=traced where s0 in [1, 4096] {{\n  {} = {}({})\n  return {}\n}}\n", operands,
                     results, op.name, op.arguments, results);
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
    if (!metas[i].shape[0].is_number()) metas[i].shape[0] = rows;
    const Tensor tensor = Tensor::empty(metas[i]);
    bytes += tensor.meta.bytes().number();
    const std::int64_t count = element_count(tensor.meta.shape).number();
    for (std::int64_t k = 0; k < count; ++k)
      store_float(tensor.meta.dtype, tensor.data(), k, static_cast<float>(k * 7919 % 2003) / 500.0f - 2.0f);
    replay.bind(i, tensor);
  }
  for (auto _ : state) replay.run();
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  using namespace weft;
  for (const BenchedOp& op : kOps)
    for (const char* dtype : {"f32", "bf16"})
      for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{1, 576}, {512, 576}, {512, 4096}})
        for (const char* provider : {"cpu", "native"})
          benchmark::RegisterBenchmark(
              fmt::format("{}/{}/{}/{}/{}", op.name, dtype, rows, columns, provider).c_str(),
              [=](benchmark::State& state) { run_op(state, op, dtype, rows, columns, provider); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
