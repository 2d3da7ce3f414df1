// Bisect finds a seeded wrong rewrite.

#include <cstdio>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "builtin/context.h"
#include "compiler/check/bisect.h"
#include "compiler/run/graph_program.h"
#include "compiler/run/sample_call.h"
#include "ir/parse.h"

namespace weft::bisect_test {

constexpr int kLayers = 10;

// Layers that differ in their epsilon, each with a sum whose operands a correct pattern swaps.
std::string model_text() {
  std::string body, last = "%x";
  for (int i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    body += fmt::format("  %s{0} = add({1}, %r)\n  %n{0} = rms_norm(%s{0}, %w, epsilon={2})\n  %a{0} = silu(%n{0})\n",
                        n, last, Attribute(1e-6 * (i + 1)).text());
    last = "%a" + n;
  }
  return "graph model(%x: f32[s0, 64], %r: f32[s0, 64], param %w: f32[64]) stage=traced where s0 in [1, 8] {\n" + body +
         "  return " + last + "\n}\n";
}

constexpr const char* kRight = R"(pattern right(?x, ?y) {
  before {
    %s = add(?x, ?y)
    %n = neg(%s)
    return %n
  }
  after {
    %s = add(?y, ?x)
    %n = neg(%s)
    return %n
  }
}
pattern also_right(?x) {
  before {
    %a = silu(?x)
    return %a
  }
  after {
    %n = neg(?x)
    %m = neg(%n)
    %a = silu(%m)
    return %a
  }
}
)";

// The norm of a single layer becomes something else.
std::string wrong_pattern(int layer, const std::string& instead) {
  return fmt::format(
      "pattern wrong(?x, ?w) {{\n  before {{\n    %n = rms_norm(?x, ?w, epsilon={})\n    return %n\n  }}\n  after {{\n "
      "   {}\n"
      "    return %n\n  }}\n}}\n",
      Attribute(1e-6 * (layer + 1)).text(), instead);
}

Registrations seeded(const std::string& text) {
  Registrations registrations("the test");
  registrations.register_patterns(text, true);
  return registrations;
}

BisectRun run_model(const Options& options, const std::string& patterns) {
  const auto context = make_context(options, seeded(patterns));
  const auto graph = parse_graph(model_text(), context->ops);
  std::vector<Tensor> inputs;
  for (const auto& input : graph->inputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : input->meta.shape) shape.push_back(dim.is_number() ? dim.number() : 5);
    inputs.push_back(make_sample_tensor({input->name, shape, DType::f32}, DType::f32, inputs.size() + 1));
  }
  BisectRun run;
  GraphProgram program(*context, graph);
  if (program.record() != nullptr) run.records.push_back(*program.record());
  for (const Tensor& result : program.run(inputs))
    for (const double element : elements_of(result)) run.values.push_back(static_cast<float>(element));
  return run;
}

BisectResult bisected(const std::string& patterns) {
  Options options;
  options.threads = 1;
  const auto context = make_context(options, seeded(patterns));
  return bisect(options, *context, [&](const Options& with) { return run_model(with, patterns); });
}

TEST(Bisect, SaysWhenThereIsNothingToFind) {
  const BisectResult result = bisected(kRight);
  EXPECT_FALSE(result.differs);
  EXPECT_EQ(result.runs, 2);
}

TEST(Bisect, FindsEachOfTwentySeededRewrites) {
  int found = 0;
  for (int layer = 0; layer < kLayers; ++layer)
    for (const char* instead :
         {"%n = rms_norm(?x, ?w, epsilon=0.01)", "%m = rms_norm(?x, ?w, epsilon=0.5)\n    %n = mul(%m, ?w)"}) {
      SCOPED_TRACE(layer);
      const BisectResult result = bisected(kRight + wrong_pattern(layer, instead));
      EXPECT_TRUE(result.differs);
      EXPECT_EQ(result.pass, "fuse_custom");
      EXPECT_EQ(result.pattern, "wrong");
      EXPECT_EQ(result.graph, "model");
      EXPECT_EQ(result.node, "n" + std::to_string(layer));
      EXPECT_EQ(result.rewrites, kLayers + 1) << "the right ones, too";
      ++found;
    }
  EXPECT_EQ(found, 20);
  std::printf("count: %d seeded rewrites found\n", found);
}

}  // namespace weft::bisect_test
