// What a compiled function costs beside its kernels, on tensors of one element.
//
//   capture_bench [--benchmark_filter=.*] [--benchmark_repetitions=5]
//
//   guards      whether the arguments pass: eight tensors of two dims, one of which is a symbol in all of them
//   call        the whole call of such a function whose one kernel does nothing; Values in, Values out
//   matched     one op of a function with graph breaks, held against what was recorded: of calls of 100 ops whose
//               results nobody wants, so that nothing else runs
//
// On a shared machine take the best of several repetitions.

#include <benchmark/benchmark.h>

#include "builtin/context.h"
#include "capture/compile.h"
#include "compiler/eager.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/rms_norm.h"

namespace weft {
namespace {

struct Bench {
  std::shared_ptr<Context> context;
  std::unique_ptr<EagerEvaluator> eager;

  Bench() {
    Options options;
    options.threads = 1;
    options.backend = "eager";
    context = make_context(std::move(options));
    context->kernels.add({.op = "add", .provider = "idle", .run = [](const KernelCall&) {}});
    context->priorities.set("add", {"idle"});
    eager = std::make_unique<EagerEvaluator>(*context, TokenRange{1, 512});
  }
  Value row() const { return eager->value(Tensor::empty(Meta::tensor(DType::f32, {1, 1}))); }
};

void guards(benchmark::State& state) {
  const Bench bench;
  Values values(8, bench.row());
  std::vector<Leaf> leaves;
  LeafReader reader(leaves);
  GuardList guards;
  for (std::size_t i = 0; i < values.size(); ++i) {
    reader.value(values[i]);
    guards.add_leaf(i, leaves[i]);
    guards.add_symbol(i, 0, "s0", {1, 512});
    guards.add_size(i, 1, 1);
  }
  for (auto _ : state) benchmark::DoNotOptimize(guards.hold(leaves));
}
BENCHMARK(guards);

void call(benchmark::State& state) {
  const Bench bench;
  auto compiled = compile(bench.context, [](Value a, Value b, Value, Value, Value, Value, Value, Value) {
    return add(std::move(a), std::move(b));
  });
  compiled.mark_dynamic(0, 0, {"s0", 1, 512});
  compiled.mark_dynamic(1, 0, {"s0", 1, 512});
  std::vector<Value> v;
  for (int i = 0; i < 8; ++i) v.push_back(bench.row());
  for (auto _ : state) benchmark::DoNotOptimize(compiled(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]));
}
BENCHMARK(call);

void matched(benchmark::State& state, const char* op) {
  const Bench bench;
  constexpr int kOps = 100;
  const bool is_norm = std::string_view(op) == "rms_norm";
  auto compiled = compile(bench.context, [is_norm](Value x) {
    benchmark::DoNotOptimize(item(x));
    for (int i = 0; i < kOps; ++i) benchmark::DoNotOptimize(is_norm ? rms_norm(x, {}, 1e-5) : add(x, x));
    return x;
  });
  const Value x = bench.row();
  for (auto _ : state) benchmark::DoNotOptimize(compiled(x));
  const auto kPerOp = benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert;
  state.counters["op"] = benchmark::Counter(kOps, kPerOp);
}
BENCHMARK_CAPTURE(matched, add, "add");
BENCHMARK_CAPTURE(matched, rms_norm, "rms_norm");

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();
