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
  const char* text;  // of a graph of rows of {0} columns and dtype {1}, twice as many {2}
};

constexpr BenchedOp kOps[] = {
    {"silu_and_mul",
     "graph g(%x: {1}[s0, {2}]) stage=traced where s0 in [1, 4096] {{\n  %y = silu_and_mul(%x)\n  return %y\n}}\n"},
    {"gelu_and_mul",
     "graph g(%x: {1}[s0, {2}]) stage=traced where s0 in [1, 4096] {{\n  %y = gelu_and_mul(%x)\n  return %y\n}}\n"},
    {"rms_norm",
     "graph g(%x: {1}[s0, {0}], %w: {1}[{0}]) stage=traced where s0 in [1, 4096] {{\n  %y = rms_norm(%x, %w, "
     "epsilon=1e-05)\n  return %y\n}}\n"},
    {"fused_add_rms_norm",
     "graph g(%x: {1}[s0, {0}], %r: {1}[s0, {0}], %w: {1}[{0}]) stage=traced where s0 in [1, 4096] {{\n  %y, %z = "
     "fused_add_rms_norm(%x, %r, %w, epsilon=1e-05)\n  return %y, %z\n}}\n"},
    {"per_token_group_quant_int8",
     "graph g(%x: {1}[s0, {0}]) stage=traced where s0 in [1, 4096] {{\n  %y, %z = per_token_group_quant_int8(%x, "
     "group_size=32)\n  return %y, %z\n}}\n"},
    {"rms_norm_per_token_group_quant_int8",
     "graph g(%x: {1}[s0, {0}], %w: {1}[{0}]) stage=traced where s0 in [1, 4096] {{\n  %y, %z = "
     "rms_norm_per_token_group_quant_int8(%x, %w, epsilon=1e-05, group_size=32)\n  return %y, %z\n}}\n"},
    {"silu_and_mul_per_token_group_quant_int8",
     "graph g(%x: {1}[s0, {2}]) stage=traced where s0 in [1, 4096] {{\n  %y, %z = "
     "silu_and_mul_per_token_group_quant_int8(%x, group_size=32)\n  return %y, %z\n}}\n"},
};

void run_op(benchmark::State& state, const BenchedOp& op, const std::string& dtype, std::int64_t rows,
            std::int64_t columns, const std::string& provider) {
  Options options;
  options.threads = 1;
  if (provider == "cpu") options.backend = "eager";
  if (const char* ceiling = std::getenv("WEFT_CPU_FEATURES")) options.cpu_features = ceiling;
  auto context = make_context(std::move(options));
  for (const auto& [name, known] : context->ops.all())
    if (!known.is_primitive() && provider == "native") context->priorities.set(name, {"native"});
  auto graph = parse_graph(fmt::format(fmt::runtime(op.text), columns, dtype, 2 * columns), context->ops);
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
