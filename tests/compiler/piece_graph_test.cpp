// Pieces by name, and each as a graph that reads back and runs.

#include "compiler/piece_graph.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "compiler/pieces.h"
#include "compiler/run/eager.h"
#include "compiler/run/graph_program.h"
#include "compiler/run/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::piece_graph_test {

TEST(PieceNames, AreNumbersNamesOrNamesInAGraph) {
  for (const char* word : {"2", "p2", "forward.p2"}) EXPECT_TRUE(names_piece(word, "forward", "p2")) << word;
  for (const char* word : {"", "p", "22", "p22", "head.p2", ".p2", "forward.2", "forwardp2"})
    EXPECT_FALSE(names_piece(word, "forward", "p2")) << word;
}

class PieceGraph : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = test_context();
  std::shared_ptr<Graph> traced_ = small_layer(*context_);
  CompiledRanges compiled_ = compile_ranges(*traced_, *context_, {{1, 8}}, {});
  const Graph& split_ = *compiled_.records[0].split;
};

TEST_F(PieceGraph, ThatIsNotThereIsRefusedWithWhatThereIs) {
  check_piece_names("--eager-piece", {"0", "p1", "layer.p2"}, compiled_.records);
  const std::string message = message_of([&] {
    check_piece_names("--eager-piece", {"p1", "seven"}, compiled_.records);
  });
  EXPECT_EQ(message, "[--eager-piece] \"seven\" names no piece; there are layer.p0, layer.p1, layer.p2");
}

TEST_F(PieceGraph, ReadsBackAndIsLegal) {
  for (const auto& piece : split_.pieces) {
    const Node* call = first_call(split_, piece->name);
    ASSERT_NE(call, nullptr);
    const auto alone = standalone_piece(split_, *call);
    EXPECT_EQ(find_breach(*alone, context_->ops).value_or(""), "") << display(*alone);
    const auto parsed = parse_graph(display(*alone), context_->ops);
    EXPECT_TRUE(structurally_equal(*parsed, *alone)) << display(*alone);
    EXPECT_EQ(parsed->name, piece->name);
    for (std::size_t i = 0; i < alone->inputs().size(); ++i) {
      EXPECT_EQ(alone->inputs()[i]->param, call->operands[i]->param);
      EXPECT_EQ(alone->inputs()[i]->donated, piece->inputs()[i]->overwrites);
    }
  }
  EXPECT_EQ(first_call(split_, "p9"), nullptr);
}

TEST_F(PieceGraph, ComputesTheSameCompiledAndOpByOp) {
  const LayerInputs inputs = layer_inputs(*traced_, 3);
  // p0 takes only inputs of the layer.
  const auto alone = standalone_piece(split_, *first_call(split_, "p0"));
  std::vector<std::size_t> numbers;
  for (const auto& input : alone->inputs())
    for (std::size_t i = 0; i < traced_->inputs().size(); ++i)
      if (traced_->inputs()[i]->name == input->name) numbers.push_back(i);
  ASSERT_EQ(numbers.size(), alone->inputs().size());
  std::vector<Tensor> given;
  EagerEvaluator evaluator(*context_, {1, 8});
  Values values;
  for (const std::size_t number : numbers) {
    given.push_back(inputs.copy(number));
    values.push_back(evaluator.value(inputs.copy(number)));
  }
  const Values eager = run_graph(*alone, evaluator, values);
  GraphProgram program(*context_, alone);
  const std::vector<Tensor> compiled = program.run(given);
  ASSERT_EQ(compiled.size(), eager.size());
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    const Tensor a = contiguous(compiled[i]), b = contiguous(eager[i].tensor());
    const std::int64_t bytes = a.meta.is_tensor() ? a.meta.bytes().number() : a.storage->bytes();
    EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<std::size_t>(bytes)), 0) << i;
  }
}

std::ptrdiff_t steps_of(const Plan& plan, const std::string& piece) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) { return step.piece == piece; });
}

struct LayerRun {
  std::shared_ptr<const Plan> plan;
  std::vector<float> values;
};

// Five rows, norms and activations by generated functions.
LayerRun run_layer(const Words& eager_pieces) {
  const auto context = test_context();
  context->options.eager_piece = eager_pieces;
  for (const char* op : {"fused_add_rms_norm", "silu_and_mul", "rotary_embedding"})
    context->priorities.set(op, {"native"});
  const auto traced = small_layer(*context);
  LayerRun run{compile_ranges(*traced, *context, {{1, 8}}, {}).plans[0], {}};
  Replay replay(run.plan, *context->threads);
  const std::vector<Tensor> inputs = layer_inputs(*traced, 5).copies();
  for (std::size_t i = 0; i < inputs.size(); ++i) replay.bind(i, inputs[i]);
  replay.run();
  const Tensor result = contiguous(replay.result(0));
  run.values.assign(result.as<float>(), result.as<float>() + element_count(result.meta.shape).number());
  return run;
}

TEST(EagerPiece, HasNoGeneratedFunctionsAndTheSameBits) {
  if (!generates_code(*test_context())) GTEST_SKIP() << "no code can be generated here";
  const LayerRun compiled = run_layer({}), swapped = run_layer({"layer.p2"}), all = run_layer({"0", "1", "2"});
  for (const LayerRun* run : {&swapped, &all})
    EXPECT_EQ(std::memcmp(run->values.data(), compiled.values.data(), compiled.values.size() * sizeof(float)), 0);
  EXPECT_GT(steps_of(*swapped.plan, "p2"), steps_of(*compiled.plan, "p2")) << "each op is a step of its own";
  EXPECT_EQ(steps_of(*swapped.plan, "p0"), steps_of(*compiled.plan, "p0")) << "others stay as they are";
  EXPECT_GT(steps_of(*all.plan, "p0"), steps_of(*compiled.plan, "p0"));
}

}  // namespace weft::piece_graph_test
