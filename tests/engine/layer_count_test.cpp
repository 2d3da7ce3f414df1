// Equal layers are compiled once, whatever their number and names.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "compiler/pieces.h"
#include "engine/open_checkpoint.h"
#include "engine/run/model_runner.h"
#include "ir/parse.h"
#include "tests/compiled_graph.h"
#include "tests/engine/tiny_model.h"
#include "tests/small_layer.h"
#include "tests/test_context.h"

namespace weft::layer_count_test {

// The compiled code for all graphs and ranges together.
struct Compiled {
  std::size_t pieces = 0, functions = 0, steps = 0, generated_steps = 0;
  bool operator==(const Compiled&) const = default;
};

Compiled compiled_model(const TemporaryFolder& folder, const std::string& architecture, int layers) {
  const ModelRegistry models = make_model_registry();
  const std::string path = write_config_only(folder, architecture, {{"num_hidden_layers", layers}});
  Options options;
  options.load_format = "dummy";
  options.threads = 2;
  const auto context = make_context(options);
  ModelRunner runner(context, open_checkpoint(path, options, models), models);
  Compiled compiled{.functions = context->generated->size(), .steps = runner.forward_plan()->steps.size()};
  for (const CompileRecord& record : runner.records()) compiled.pieces += record.split->pieces.size();
  for (const PlanStep& step : runner.forward_plan()->steps)
    if (context->generated->find(step.op) == step.kernel) ++compiled.generated_steps;
  return compiled;
}

// Both numbers hold whole periods of layers with and without a window or rotary positions.
TEST(LayerCount, ManyLayersCompileWhatFewDo) {
  constexpr int kFew = 12, kMany = 84;
  const TemporaryFolder folder;
  const bool generates = generates_code(*test_context());
  for (const std::string& architecture : make_model_registry().architectures()) {
    Compiled few = compiled_model(folder, architecture, kFew), many = compiled_model(folder, architecture, kMany);
    EXPECT_GE(many.steps, few.steps + (kMany - kFew) * 5) << architecture << " has too few layers";
    EXPECT_EQ(many.pieces, few.pieces) << architecture;
    EXPECT_EQ(many.functions, few.functions) << architecture;
    EXPECT_EQ(many.functions > 0, generates) << architecture;
    if (!generates) continue;
    EXPECT_GE(many.generated_steps, few.generated_steps + (kMany - kFew) * 3)
        << architecture << " calls fewer than three a layer";
  }
}

// The epsilon of a layer's norm.
using Epsilon = double(int layer);
double one_epsilon(int) { return 1e-05; }
double epsilon_of_layer(int layer) { return 1e-05 * (layer + 1); }

// A graph of layers around attention. NAME in the text of a layer is replaced by the layer's name.
std::string layers_text(int layers, const std::string& value, const std::string& origin,
                        Epsilon* epsilon = &one_epsilon) {
  const auto named = [](std::string text, int layer) {
    for (std::size_t at = 0; (at = text.find("NAME", at)) != std::string::npos;)
      text.replace(at, 4, fmt::format("layer_{}", layer));
    return text;
  };
  std::string inputs = "%x: f32[s0, 32], %batch: batch", lines;
  std::string rows = "%x";
  for (int layer = 0; layer < layers; ++layer) {
    const std::string of = named(value, layer), note = named(origin, layer);
    inputs += fmt::format(", %kv{0}: kv[f32, block=4, heads=2, head_dim=16], param %weight{1}: f32[32]", layer, of);
    lines += fmt::format("  %h{0}, %sum{0} = fused_add_rms_norm({1}, {1}, %weight{0}, epsilon={2}){3}\n", of, rows,
                         epsilon(layer), note);
    lines += fmt::format("  %query{0} = reshape(%h{0}, shape=[s0, 2, 16]){1}\n", of, note);
    lines += fmt::format("  %a{0} = attention(%query{0}, %kv{1}, %batch, scale=0.25){2}\n", of, layer, note);
    lines += fmt::format("  %flat{0} = reshape(%a{0}, shape=[s0, 32]){1}\n  %rows{0} = add(%flat{0}, %sum{0}){1}\n", of,
                         note);
    rows = "%rows" + of;
  }
  return fmt::format("graph g({}) stage=traced where s0 in [1, 8] {{\n{}  return {}\n}}\n", inputs, lines, rows);
}

Compiled compiled_text(const std::string& text) {
  const auto context = test_context();
  auto graph = parse_graph(text, context->ops);
  const weft::Compiled made = compile(*graph, *context, {1, 8}, {});
  return {.pieces = made.record.split->pieces.size(),
          .functions = context->generated->size(),
          .steps = made.plan->steps.size()};
}

// Values, weights and origins contain the layer's name in every node of a piece.
TEST(LayerCount, NamesWithinNodesMakeNoPieceAnother) {
  const Compiled plain = compiled_text(layers_text(12, "NAME", ""));
  EXPECT_EQ(plain.pieces, 4u);  // the first, attention, the piece between, the last
  EXPECT_EQ(plain.pieces, compiled_text(layers_text(3, "NAME", "")).pieces);
  EXPECT_EQ(compiled_text(layers_text(12, "model.NAME.self_attn", "")), plain);
  EXPECT_EQ(compiled_text(layers_text(12, "NAME", "  #@ layer=NAME part=NAME.mlp")), plain);
}

// Pieces that differ only in scalars are separate, but share their functions.
TEST(LayerCount, LayersThatDifferInScalarsHaveOneFunction) {
  if (!generates_code(*test_context())) GTEST_SKIP() << "no code is generated here";
  const auto compiled = [](int layers, Epsilon* epsilon) {
    return compiled_text(layers_text(layers, "NAME", "", epsilon)).functions;
  };
  const std::size_t equal = compiled(4, &one_epsilon);
  EXPECT_GE(equal, 3u);  // the first, the piece between, the last
  EXPECT_EQ(compiled(4, &epsilon_of_layer), equal);
  EXPECT_EQ(compiled(80, &epsilon_of_layer), equal);
}

TEST(LayerCount, LayersThatDifferInScalarsHaveTheBitsOfTheirOwn) {
  const auto context = test_context();
  const auto graph = parse_graph(layers_text(6, "NAME", "", &epsilon_of_layer), context->ops);
  const LayerInputs inputs = layer_inputs(*graph, 5);
  const std::vector<Tensor> wanted = run_eagerly(*graph, *context, {1, 8}, inputs.tensors);
  EXPECT_EQ(first_difference(*graph, wanted, run_compiled(*graph, *context, {1, 8}, inputs.tensors)), "");
  const auto alike = parse_graph(layers_text(6, "NAME", ""), context->ops);
  EXPECT_NE(first_difference(*graph, wanted, run_compiled(*alike, *context, {1, 8}, inputs.tensors)), "")
      << "the numbers change nothing";
}

// The words of each op are part of its computation and are from a list, except a rank group's name; so none can contain
// a layer's name.
TEST(LayerCount, NoOpTakesANameButOfAGroup) {
  const auto context = test_context();
  for (const auto& [name, op] : context->ops.all())
    for (const Parameter& parameter : op.schema.parameters) {
      if (parameter.type != ParameterType::string || parameter.name == "group_name") continue;
      const SampleCall call = make_sample_call(op, op.samples.front(), DType::f32);
      Attributes changed = call.attributes;
      changed.set(parameter.name, EnumWord{"layer_3"});
      EXPECT_THROW(infer_results(op, context->ops, metas_of(call.operands), changed), UserError)
          << name << " takes any " << parameter.name;
    }
}

}  // namespace weft::layer_count_test
