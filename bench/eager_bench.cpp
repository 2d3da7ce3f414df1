// What one eager call costs beside its kernel, on tensors of one element.
//
//   eager_bench [--benchmark_filter=.*] [--benchmark_repetitions=5]
//
//   choice      which kernel runs a rms_norm, from the list of candidates of the op
//   evaluate    choice, result types, and memory for the result: an evaluator's work, around a kernel that does nothing
//   call        the whole call that an author writes: checks of the operands and attributes, evaluate, the kernel
//
// On a shared machine take the best of several repetitions.

#include <benchmark/benchmark.h>

#include "builtin/context.h"
#include "compiler/run/eager.h"
#include "ops/add.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/rms_norm.h"

namespace weft {
namespace {

constexpr TokenRange kRange = {1, 8};

const Meta kRow = Meta::tensor(DType::f32, {1, 1});
const Meta kWeight = Meta::tensor(DType::f32, {1});

std::shared_ptr<Context> make_bench_context(bool idle) {
  Options options;
  options.threads = 1;
  auto context = make_context(std::move(options));
  if (!idle) return context;
  for (const char* op : {"add", "rms_norm"}) {
    context->kernels.add({.op = op, .provider = "idle", .run = [](const KernelCall&) {}});
    context->priorities.set(op, {"idle"});
  }
  return context;
}

void choice(benchmark::State& state) {
  const auto context = make_bench_context(false);
  const auto candidates = list_candidates(context->kernels, context->priorities, "rms_norm", false);
  const std::vector<std::optional<Meta>> operands = {kRow, kWeight};
  const std::vector<Meta> results = {kRow};
  const Attributes attributes = complete_attributes(context->ops.at("rms_norm").schema, {{"epsilon", 1e-5}});
  for (auto _ : state) benchmark::DoNotOptimize(&choose(candidates, {operands, results, attributes, kRange}));
}
BENCHMARK(choice);

void evaluate(benchmark::State& state, const char* op_name) {
  const auto context = make_bench_context(true);
  EagerEvaluator eager(*context, kRange);
  const Op& op = context->ops.at(op_name);
  const bool is_norm = op.name == "rms_norm";
  const Values operands = {eager.value(Tensor::empty(kRow)), eager.value(Tensor::empty(is_norm ? kWeight : kRow))};
  const Attributes attributes =
      is_norm ? complete_attributes(op.schema, {{"epsilon", 1e-5}}) : complete_attributes(op.schema, {});
  for (auto _ : state) benchmark::DoNotOptimize(eager.evaluate(op, operands, attributes, false));
}
BENCHMARK_CAPTURE(evaluate, add, "add");
BENCHMARK_CAPTURE(evaluate, rms_norm, "rms_norm");

template <class Body>
void whole_call(benchmark::State& state, Body&& body) {
  const auto context = make_bench_context(false);
  EagerEvaluator eager(*context, kRange);
  const Value x = eager.value(Tensor::empty(kRow)), y = eager.value(Tensor::empty(kRow));
  const Value weight = eager.value(Tensor::empty(kWeight));
  for (auto _ : state) benchmark::DoNotOptimize(body(x, y, weight));
}
void call_add(benchmark::State& state) {
  whole_call(state, [](const Value& x, const Value& y, const Value&) { return add(x, y); });
}
void call_rms_norm(benchmark::State& state) {
  whole_call(state, [](const Value& x, const Value&, const Value& weight) { return rms_norm(x, weight, 1e-5); });
}
void call_fused_add_rms_norm(benchmark::State& state) {
  whole_call(state, [](const Value& x, const Value& y, const Value& weight) {
    return fused_add_rms_norm(x, y, weight, 1e-5);
  });
}
void call_fused_add_rms_norm_in_place(benchmark::State& state) {
  whole_call(state, [](const Value& x, const Value& y, const Value& weight) {
    return fused_add_rms_norm(maybe_inplace, x, y, weight, 1e-5);
  });
}
BENCHMARK(call_add);
BENCHMARK(call_rms_norm);
BENCHMARK(call_fused_add_rms_norm);
BENCHMARK(call_fused_add_rms_norm_in_place);

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();
