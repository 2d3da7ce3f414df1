#include "compiler/run/graph_program.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "tests/cache/cache_case.h"
#include "tests/thrown_message.h"

namespace weft::graph_program_test {

std::shared_ptr<Context> context_of(const std::string& option = "", const std::string& value = "") {
  Options options;
  options.threads = 2;
  options.max_num_batched_tokens = 16;
  if (!option.empty()) set_option(options, option, value, "test");
  return make_context(options);
}

Tensor rows_of(std::int64_t rows) {
  Tensor tensor = Tensor::empty(Meta::tensor(DType::f32, {rows, 3}));
  for (std::int64_t i = 0; i < 3 * rows; ++i) tensor.as<float>()[i] = 1 + static_cast<float>(i);
  return tensor;
}

TEST(GraphProgram, GivesTheSameCompiledStoppedAndEager) {
  for (const auto& [option, value] : std::vector<std::pair<const char*, const char*>>{
           {"", ""}, {"enforce-eager", "true"}, {"compile-to", "traced"}, {"compile-to", "split"}}) {
    const auto context = context_of(option, value);
    const auto graph =
        parse_graph("graph g(%x: f32[s0, 3]) stage=traced {\n  %y = neg(%x)\n  return %y, %x\n}", context->ops);
    GraphProgram program(*context, graph);
    EXPECT_EQ(program.record() == nullptr, context->options.enforce_eager);
    for (const std::int64_t rows : {5, 1, 16}) {
      const std::vector<Tensor> inputs{rows_of(rows)};
      const std::vector<Tensor> results = program.run(inputs);
      ASSERT_EQ(results.size(), 2U);
      EXPECT_EQ(results[1].data(), inputs[0].data()) << "it is the input";
      for (std::int64_t i = 0; i < 3 * rows; ++i)
        EXPECT_EQ(results[0].as<float>()[i], -inputs[0].as<float>()[i]) << option << " " << rows;
    }
  }
}

constexpr const char* kNorm =
    "graph g(%x: bf16[s0, 64], %w: bf16[64]) stage=traced {\n  %y = rms_norm(%x, %w, epsilon=1e-05)\n"
    "  %v = slice(%y, dim=1, start=8, end=24)\n  return %y, %v, %x\n}";

std::vector<std::vector<std::uint16_t>> norms(const std::shared_ptr<Context>& context) {
  GraphProgram program(*context, parse_graph(kNorm, context->ops));
  std::vector<std::vector<std::uint16_t>> all;
  for (const std::int64_t rows : {5, 1, 16, 5}) {
    const std::vector<Tensor> inputs{Tensor::empty(Meta::tensor(DType::bf16, {rows, 64})),
                                     Tensor::empty(Meta::tensor(DType::bf16, {64}))};
    for (const Tensor& input : inputs)
      for (std::int64_t i = 0; i < input.meta.bytes().number() / 2; ++i)
        input.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(0x3f80 + (i * 37 + rows) % 127);
    for (const Tensor& result : program.run(inputs)) {
      const Tensor plain = contiguous(result);
      all.emplace_back(plain.as<std::uint16_t>(), plain.as<std::uint16_t>() + plain.meta.bytes().number() / 2);
    }
  }
  return all;
}

TEST(GraphProgram, RunsOnTheDeviceOfItsContext) {
  for (const bool hides : {false, true}) {
    const auto context = context_of("device", "fake-cuda");
    cuda::FakeSettings fake;
    fake.hides_memory = hides;
    put_on_fake_cuda(*context, std::move(fake), {});
    EXPECT_EQ(norms(context), norms(context_of())) << hides;
    EXPECT_GE(context->stream_device->queue().launches(), 3) << "it ran in the device's queue";
  }
}

TEST(GraphProgram, IsNotRunOpByOpBesideADevice) {
  for (const auto& [option, value] : {std::pair("enforce-eager", "true"), {"compile-to", "lowered"}}) {
    const auto context = context_of(option, value);
    context->device.id = {DeviceType::fake_cuda, 0};
    cuda::FakeSettings fake;
    fake.hides_memory = true;
    put_on_fake_cuda(*context, std::move(fake), {});
    const std::string said = message_of<UserError>([&] { GraphProgram(*context, parse_graph(kNorm, context->ops)); });
    EXPECT_EQ(said.find("[--" + std::string(option) + "] runs ops one by one on the host, which cannot read"), 0u)
        << said;
  }
}

TEST(GraphProgram, SymbolsWithoutBoundsGetThoseOfOneStep) {
  const auto context = context_of();
  const auto graph =
      parse_graph("graph g(%x: f32[s0, s1]) stage=traced where s1 in [1, 4] {\n  return %x\n}", context->ops);
  complete_bounds(*graph, context->options);
  EXPECT_EQ(graph->bounds, (Bounds{{"s0", {1, 16}}, {"s1", {1, 4}}}));
  const TokenRange range = token_range(*graph, context->options);
  EXPECT_EQ(range.lo, 1);
  EXPECT_EQ(range.hi, 16);
}

TEST(GraphProgram, SizesThatFollowFromSymbolsAreChecked) {
  const auto context = context_of();
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 3], %y: f32[1, align(s0, 4), 8]) stage=traced {\n  return %x, %y\n}", context->ops);
  const auto refusal = [&](std::int64_t rows, std::int64_t aligned) {
    const std::vector<Tensor> inputs{rows_of(rows), Tensor::empty(Meta::tensor(DType::f32, {1, aligned, 8}))};
    return message_of([&] {
      Bindings symbols;
      for (std::size_t i = 0; i < 2; ++i) check_input(*graph->inputs()[i], inputs[i], symbols, graph->bounds);
      check_sizes(*graph, inputs, symbols);
    });
  };
  EXPECT_EQ(refusal(5, 8), "");
  EXPECT_EQ(refusal(8, 8), "");
  EXPECT_EQ(missing_part(refusal(5, 4), {"[graph run] input y", "align(s0, 4) = 8", "f32[1, 4, 8]"}), "");
}

TEST(GraphProgram, ADonatedValueThatIsUsedAgainIsRefusedInEachMode) {
  for (const auto& [option, value] : std::vector<std::pair<const char*, const char*>>{
           {"", ""}, {"enforce-eager", "true"}, {"compile-to", "traced"}}) {
    const auto context = context_of(option, value);
    const auto graph = parse_graph(
        "graph g(donated %x: f32[s0, 8], donated %r: f32[s0, 8]) stage=traced {\n"
        "  %y, %s = fused_add_rms_norm.maybe_inplace(%x, %r, none, epsilon=1e-05)\n  %z = add(%y, %x)\n"
        "  return %z, %s\n}",
        context->ops);
    const std::string said = message_of([&] { GraphProgram(*context, graph); });
    EXPECT_NE(said.find("%x is used again after it was donated"), std::string::npos) << option << said;
  }
}

constexpr const char* kDivide =
    "graph g(%x: f16[s0, 64]) stage=traced {\n  %a = div(%x, %x)\n  %b = neg(%a)\n  %c = amax(%a)\n"
    "  return %a, %b, %c\n}";

Tensor halves(std::int64_t rows, std::uint16_t element) {
  Tensor tensor = Tensor::empty(Meta::tensor(DType::f16, {rows, 64}));
  std::fill_n(tensor.as<std::uint16_t>(), rows * 64, element);
  return tensor;
}

TEST(GraphProgram, CheckReplayComparesEachRunWithTheGraph) {
  const auto context = context_of("check-replay", "true");
  GraphProgram program(*context, parse_graph(kDivide, context->ops));
  for (const std::uint16_t element : {0x3c00, 0x0000, 0x7c00, 0x7e00, 0xfe00}) {  // 1, 0, infinity, NaN of both signs
    const std::vector<Tensor> inputs{halves(3, element)};
    EXPECT_EQ(program.run(inputs).size(), 3u) << "a NaN is the same as any other";
  }
}

TEST(GraphProgram, APlanFromTheCompileCacheHasARecordToo) {
  CacheCase files;
  std::vector<std::string> splits;
  for (const bool is_filled : {false, true}) {
    const auto context = context_of("check-replay", "true");
    context->cache = files.open();
    GraphProgram program(*context, parse_graph(kDivide, context->ops));
    EXPECT_EQ(context->cache->counters().hits > 0, is_filled);
    const std::vector<Tensor> inputs{halves(3, 0x3c00)};
    EXPECT_EQ(program.run(inputs).size(), 3u) << "the run was compared with the graph of the record";
    splits.push_back(canonical(*program.record()->split));
    const FirstTimeWork::Counts compiled = context->first_time_work->counts(FirstTime::compile);
    EXPECT_EQ(compiled.before_ready == 0, is_filled);
  }
  EXPECT_EQ(splits[0], splits[1]);
}

TEST(GraphProgram, OnlyPlansOfTracedGraphsAreKept) {
  CacheCase files;
  for (const auto& [stage, option] : {std::pair("pure", ""), {"traced", "compile-to"}}) {
    const auto context = context_of(option, "split");
    context->cache = files.open();
    const std::string text = fmt::format("graph g(%x: f32[s0, 3]) stage={} {{\n  %y = neg(%x)\n  return %y\n}}", stage);
    GraphProgram program(*context, parse_graph(text, context->ops));
    const std::vector<Tensor> inputs{rows_of(2)};
    EXPECT_EQ(program.run(inputs)[0].as<float>()[1], -2) << stage;
  }
  EXPECT_EQ(files.files("plans"), 0u);
}

TEST(GraphProgram, CheckReplayFailsWhereACompiledPieceIsWrong) {
  const auto context = context_of("check-replay", "true");
  context->options.backend = "eager";  // kernels alone
  Kernel kernel = *context->kernels.find("silu_and_mul", "cpu");
  kernel.provider = "moody";
  int calls = 0;  // replayed, step by step, and of the graph: only the last is right
  kernel.run = [&calls, run = kernel.run](const KernelCall& call) {
    run(call);
    if (calls++ % 3 != 2) call.results[0].data[2] ^= std::byte{1};
  };
  context->kernels.add(std::move(kernel));
  context->priorities.set("silu_and_mul", {"moody"});
  const auto graph =
      parse_graph("graph g(%x: f32[s0, 16]) stage=traced {\n  %y = silu_and_mul(%x)\n  return %y\n}", context->ops);
  GraphProgram program(*context, graph);
  Tensor input = Tensor::empty(Meta::tensor(DType::f32, {3, 16}));
  std::fill_n(input.as<float>(), 3 * 16, 0.5F);
  const std::string said = message_of<InternalError>([&] { program.run({&input, 1}); });
  EXPECT_EQ(said.find("[--check-replay] piece g."), 0u) << said;
  EXPECT_NE(said.find("%y"), std::string::npos) << said;
}

TEST(GraphProgram, InputsMustFitTheTextAndEachOther) {
  const auto context = context_of();
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 3], %y: f32[s0, 3]) stage=traced where s0 in [2, 4] {\n  return %x\n}", context->ops);
  const auto refusal = [&](const Tensor& x, const Tensor& y) -> std::string {
    Bindings symbols;
    return message_of([&] {
      check_input(*graph->inputs()[0], x, symbols, graph->bounds);
      check_input(*graph->inputs()[1], y, symbols, graph->bounds);
    });
  };
  EXPECT_EQ(refusal(rows_of(3), rows_of(3)), "");
  EXPECT_EQ(refusal(rows_of(0), rows_of(0)), "");
  EXPECT_EQ(missing_part(refusal(rows_of(3), rows_of(2)), {"[graph run]", "s0: 3 and 2 (y)"}), "");
  EXPECT_EQ(missing_part(refusal(rows_of(5), rows_of(5)), {"[graph run] s0", "[2, 4]", "5"}), "");
  EXPECT_EQ(missing_part(refusal(Tensor::empty(Meta::tensor(DType::f16, {3, 3})), rows_of(3)),
                         {"[graph run] input x", "f32[s0, 3]", "f16[3, 3]"}),
            "");
}

}  // namespace weft::graph_program_test
