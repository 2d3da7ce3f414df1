// Donated arguments, case by case: copies that are removed and that are kept, with their reasons; graphs for which
// vLLM's clone elimination gives wrong values; in-place kernels in eager mode, by address; the memory that a decoder
// layer saves.

#include <algorithm>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/kv_cache_update.h"
#include "ops/slice.h"
#include "report/explain.h"
#include "runtime/replay.h"
#include "tests/compiler/overwriting_kernels.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::donation_test {

constexpr TokenRange kRange = {1, 8};

const Context& context() {
  static const std::shared_ptr<Context> shared = overwriting_context({}, {"neg"});
  return *shared;
}

std::shared_ptr<Graph> parsed(const std::string& inputs, const std::string& body, const std::string& stage = "traced") {
  return parse_graph("graph g(" + inputs + ") stage=" + stage + " {\n" + body + "\n}\n", context().ops);
}

std::ptrdiff_t clones_left(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) { return step.op == "clone"; });
}

std::vector<std::string> reasons(const CompileRecord& record) {
  std::vector<std::string> all;
  for (const PassRecord& pass : record.passes)
    for (const auto& [node, reason] : pass.result.kept_clones) all.push_back("%" + node + ": " + reason);
  return all;
}

// Runs it compiled, eagerly and by its meaning. All three must agree to the bit and must not change values that are not
// donated. Returns the number of remaining copies.
std::ptrdiff_t clones_of_run(const std::string& inputs, const std::string& body) {
  const auto graph = parsed(inputs, body);
  const LayerInputs given = layer_inputs(*graph, 3);
  Interpreter interpreter(context());
  const Values wanted = run_graph(*graph, interpreter, values_of(interpreter, given.copies()));
  EagerEvaluator eager(context(), kRange);
  const std::vector<Tensor> eager_inputs = given.copies(), bound = given.copies();
  const Values eagerly = run_graph(*graph, eager, values_of(eager, eager_inputs));
  const auto copy = graph->clone();
  const Compiled compiled = compile(*copy, context(), kRange, {});
  Replay replay(compiled.plan, *context().threads);
  for (std::size_t i = 0; i < bound.size(); ++i) replay.bind(i, bound[i]);
  replay.run();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(difference(wanted[i].tensor(), replay.result(i), {}, true), "") << "compiled, result " << i << body;
    EXPECT_EQ(difference(wanted[i].tensor(), eagerly[i].tensor(), {}, true), "") << "eager, result " << i << body;
  }
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (compiled.plan->slots[static_cast<std::size_t>(compiled.plan->inputs[i])].donated) continue;
    EXPECT_EQ(difference(given.tensors[i], bound[i], {}, true), "") << "input " << i << " was written over" << body;
    EXPECT_EQ(difference(given.tensors[i], eager_inputs[i], {}, true), "") << "input " << i << " eagerly" << body;
  }
  return clones_left(*compiled.plan);
}

// Spec K.14. bump(x, y) adds y to x in place; `a` is made in the graph.
TEST(Donation, GivesTheRightValuesWhereVllmsPassGivesWrongOnes) {
  const std::string inputs = "%x: f32[s0, 8], %y: f32[s0, 8]";
  const std::string a = "  %a = add(%x, %y)\n", c = "  %c = clone(%a)\n", d = "  %d = clone(%a)\n";
  // A snapshot, then the original is overwritten: the copy must remain.
  EXPECT_EQ(clones_of_run(inputs, a + c + "  %b = bump.maybe_inplace(%a, %y)\n  return %c, %b"), 1);
  // Two copies, one of which is written over: one may go, in either order.
  EXPECT_EQ(clones_of_run(inputs, a + c + d + "  %b = bump.maybe_inplace(%c, %y)\n  return %b, %d"), 1);
  EXPECT_EQ(clones_of_run(inputs, a + d + c + "  %b = bump.maybe_inplace(%c, %y)\n  return %b, %d"), 1);
  // A copy is overwritten and the original returned, whichever argument is copied.
  EXPECT_EQ(clones_of_run(inputs, a + c + "  %b = bump.maybe_inplace(%c, %y)\n  return %b, %a"), 1);
  EXPECT_EQ(clones_of_run(inputs + ", %r: f32[s0, 8]",
                          a + c +
                              "  %b, %s = fused_add_rms_norm.maybe_inplace(%r, %c, none, epsilon=1e-05)\n"
                              "  return %b, %s, %a"),
            1);
  // A view of the original is read after the copy was written over.
  EXPECT_EQ(clones_of_run(inputs, a + "  %v = reshape(%a, shape=[s0, 2, 4])\n" + c +
                                      "  %b = bump.maybe_inplace(%c, %y)\n  return %b, %v"),
            1);
}

TEST(Donation, LeavesTheCopiesThatVllmLeavesElsewhere) {
  const std::string inputs = "%x: f32[s0, 8], %y: f32[s0, 8]";
  const std::string a = "  %a = add(%x, %y)\n", c = "  %c = clone(%a)\n";
  const std::string of_x = "  %c = clone(%x)\n", chain = of_x + "  %d = clone(%c)\n";
  EXPECT_EQ(clones_of_run(inputs, of_x + "  %b = bump.maybe_inplace(%c, %y)\n  return %b"), 1);
  EXPECT_EQ(clones_of_run("donated " + inputs, of_x + "  %b = bump.maybe_inplace(%c, %y)\n  return %b"), 0);
  EXPECT_EQ(clones_of_run(inputs, a + c + "  %b = bump.maybe_inplace(%c, %y)\n  return %b"), 0);
  EXPECT_EQ(clones_of_run(inputs, chain + "  %b = bump.maybe_inplace(%d, %y)\n  return %b"), 1);
  EXPECT_EQ(clones_of_run("donated " + inputs, chain + "  %b = bump.maybe_inplace(%d, %y)\n  return %b"), 0);
}

TEST(Donation, CopiesGoAlongAChainThroughPieces) {
  // neg is cut out: four pieces hand one storage on.
  EXPECT_EQ(clones_of_run("donated %x: f32[s0, 8], %y: f32[s0, 8]",
                          "  %a = bump(%x, %y)\n  %n = neg(%y)\n  %b = bump(%a, %n)\n  %m = neg(%n)\n"
                          "  %c = bump(%b, %m)\n  return %c"),
            0);
  // The first piece's value is read again after the cut.
  EXPECT_EQ(clones_of_run("donated %x: f32[s0, 8], %y: f32[s0, 8]",
                          "  %b = bump(%x, %y)\n  %n = neg(%y)\n  %c = bump(%b, %n)\n  %m = neg(%n)\n"
                          "  %d = add(%b, %m)\n  return %c, %d"),
            1);
  // Donated in the text, and read by a later piece.
  EXPECT_EQ(clones_of_run("donated %x: f32[s0, 8], %y: f32[s0, 8]",
                          "  %b = bump(%x, %y)\n  %n = neg(%y)\n  %c = add(%x, %n)\n  return %b, %c"),
            1);
}

TEST(Donation, BothResultsOfOneOpMayBeWrittenOver) {
  EXPECT_EQ(clones_of_run("%x: f32[s0, 8], %y: f32[s0, 8]",
                          "  %b, %s = fused_add_rms_norm(%x, %y, none, epsilon=1e-05)\n  %c = bump(%b, %y)\n"
                          "  %d = bump(%s, %y)\n  return %c, %d"),
            2);  // of only the two inputs
}

struct Kept {
  const char* inputs;
  const char* body;
  const char* reason;
  const char* stage = "traced";
};

// Every reason that clone_elimination reports.
const Kept kKept[] = {
    {"%x: f32[s0, 8], %y: f32[s0, 8]", "  %b = bump(%x, %y)\n  return %b", "%x is an input that was not donated"},
    {"donated %x: f32[s0, 8], %y: f32[s0, 8]", "  %b = bump(%x, %y)\n  %d = add(%x, %b)\n  return %d",
     "the old value of %x may still be read"},
    {"donated %x: f32[s0, 8], %y: f32[s0, 8]",
     "  %c = clone@native(%x)\n  %d = clone@native(%x)\n  %b = bump@over.inplace(&%c, %y)\n  return %b, %d",
     "%x is overwritten while it is needed", "lowered where s0 in [1, 8]"},
    {"%x: f32[s0, 8]", "  %c = clone(%x)\n  return %c", "it is returned, and %x was not donated"},
    {"%x: f32[s0, 8]", "  %a = add(%x, %x)\n  %c = clone(%a)\n  return %a, %c", "both it and %a are returned"},
    {"%x: f32[s0, 8]", "  %v = slice(%x, dim=1, start=0, end=4)\n  %c = clone(%v)\n  %n = neg(%c)\n  return %n",
     "it changes the layout"},
};

TEST(Donation, ReportsEveryCopyThatStaysWithItsReason) {
  for (const Kept& kept : kKept) {
    const auto graph = parsed(kept.inputs, kept.body, kept.stage);
    const Compiled compiled = compile(*graph, context(), kRange, {});
    Explanation explanation;
    explanation.records.push_back(compiled.record);
    const std::vector<std::string> all = reasons(compiled.record);
    ASSERT_EQ(all.size(), 1u) << kept.body;
    EXPECT_EQ(clones_left(*compiled.plan), 1) << kept.body;
    const std::string name = all[0].substr(0, all[0].find(':'));
    EXPECT_EQ(all[0], name + ": " + kept.reason);
    EXPECT_NE(explain_text(explanation).find("copy " + name + " stays: " + kept.reason + "\n"), std::string::npos)
        << explain_text(explanation);
    const auto json = explain_json(explanation)["clones"];
    ASSERT_EQ(json["kept"].size(), 1u) << json.dump();
    EXPECT_EQ("%" + json["kept"][0]["node"].get<std::string>(), name);
    EXPECT_EQ(json["kept"][0]["reason"], kept.reason);
  }
}

TEST(Donation, RefusesACopyOfPagesThatWouldStay) {
  const std::string kv = "%kv: kv[f32, block=4, heads=1, head_dim=16]";
  const std::string rest = ", %k: f32[s0, 1, 16], %slots: i64[s0], %q: f32[s0, 2, 16], %batch: batch";
  const auto refusal = [&](const std::string& inputs, const std::string& body) -> std::string {
    const auto graph = parsed(inputs, body);
    return message_of([&] { compile(*graph, context(), kRange, {}); });
  };
  const std::string update = "  %kv1 = kv_cache_update(%k, %k, %kv, %slots)\n";
  EXPECT_NE(refusal(kv + rest, update + "  return %kv1")
                .find("a copy of the KV pages %kv would have to stay, since %kv is an input that was not donated"),
            std::string::npos);
  EXPECT_NE(refusal("donated " + kv + rest, update + "  %a = attention(%q, %kv, %batch, scale=0.25)\n  return %a, %kv1")
                .find("since the old value of %kv may still be read"),
            std::string::npos);
  EXPECT_EQ(
      refusal("donated " + kv + rest, update + "  %a = attention(%q, %kv1, %batch, scale=0.25)\n  return %a, %kv1"),
      "");
}

TEST(Donation, RefusesUseBehindACutOfTheGraph) {
  const auto graph = parsed("%x: f32[s0, 8], %y: f32[s0, 8]",
                            "  %b = bump.maybe_inplace(%x, %y)\n  %n = neg(%b)\n  %c = add(%n, %x)\n  return %c");
  const std::string message = message_of([&] { compile(*graph, context(), kRange, {}); });
  EXPECT_NE(message.find("%x is used again after it was donated: line 2, `%b: f32[s0, 8] = bump.maybe_inplace(%x, "
                         "%y)` donates it, line 4, `%c: f32[s0, 8] = add(%n, %x)` uses it"),
            std::string::npos)
      << message;
}

class EagerDonation : public testing::Test {
 protected:
  EagerDonation() : eager_(context(), kRange) {}

  Tensor rows(double value) const {
    Tensor tensor = Tensor::empty(Meta::tensor(DType::f32, {2, 8}));
    for (int i = 0; i < 16; ++i) tensor.as<float>()[i] = static_cast<float>(value);
    return tensor;
  }

  EagerEvaluator eager_;
};

TEST_F(EagerDonation, GivenAwayGoesStraightToTheKernelThatWritesOverIt) {
  const Tensor x = rows(1), residual = rows(2);
  const auto [y, sum] =
      fused_add_rms_norm(maybe_inplace, eager_.value(x), eager_.value(residual), Value(), Scalar(1e-5));
  EXPECT_EQ(y.tensor().data(), x.data());
  EXPECT_EQ(sum.tensor().data(), residual.data());
  EXPECT_EQ(residual.as<float>()[0], 3);
  const Tensor z = rows(1);
  const Value bumped = call("bump", {eager_.value(z), eager_.value(rows(4))}, {}, true)[0];
  EXPECT_EQ(bumped.tensor().data(), z.data());
  EXPECT_EQ(z.as<float>()[0], 5);
}

TEST_F(EagerDonation, TheOrdinaryCallCopiesWhatTheKernelWritesOver) {
  const Tensor x = rows(1), residual = rows(2);
  const auto [y, sum] = fused_add_rms_norm(eager_.value(x), eager_.value(residual), Value(), Scalar(1e-5));
  EXPECT_NE(y.tensor().data(), x.data());
  EXPECT_NE(sum.tensor().data(), residual.data());
  EXPECT_EQ(x.as<float>()[0], 1);
  EXPECT_EQ(residual.as<float>()[0], 2);
  EXPECT_EQ(sum.tensor().as<float>()[0], 3);
}

TEST_F(EagerDonation, PagesStayWhereTheyAre) {
  const KvLayout layout{.dtype = DType::f32, .block = 4, .heads = 1, .head_dim = 16};
  const Tensor pages = Tensor::empty(Meta::pages(layout), 2);
  const Value key = eager_.value(Tensor::empty(Meta::tensor(DType::f32, {1, 1, 16})));
  const Value slots = eager_.value(Tensor::empty(Meta::tensor(DType::i64, {1})));
  EXPECT_EQ(kv_cache_update(maybe_inplace, key, key, eager_.value(pages), slots).tensor().data(), pages.data());
  EXPECT_NE(kv_cache_update(key, key, eager_.value(pages), slots).tensor().data(), pages.data());
}

TEST_F(EagerDonation, AnotherLayoutIsCopiedAsInACompiledGraph) {
  const Tensor x = rows(1), residual = rows(2);
  const Value half = slice(eager_.value(x), 1, 0, 4), other = slice(eager_.value(residual), 1, 4, 8);
  const auto [y, sum] = fused_add_rms_norm(maybe_inplace, half, other, Value(), Scalar(1e-5));
  EXPECT_TRUE(sum.meta().is_contiguous());
  EXPECT_EQ(sum.tensor().as<float>()[0], 3);
  EXPECT_EQ(x.as<float>()[0], 1);
}

TEST_F(EagerDonation, RefusesOneMemoryGivenAwayAndTakenByOneCall) {
  const Value x = eager_.value(rows(1));
  EXPECT_THROW(fused_add_rms_norm(maybe_inplace, x, x, Value(), Scalar(1e-5)), UserError);
  EXPECT_THROW(call("bump", {x, x}, {}, true), UserError);
  const Value left = slice(x, 1, 0, 4), right = slice(x, 1, 4, 8);
  EXPECT_NO_THROW(fused_add_rms_norm(maybe_inplace, left, right, Value(), Scalar(1e-5)));
  EXPECT_THROW(fused_add_rms_norm(maybe_inplace, left, slice(x, 1, 2, 6), Value(), Scalar(1e-5)), UserError);
  EXPECT_NO_THROW(fused_add_rms_norm(x, x, Value(), Scalar(1e-5)));
}

// The steps of the two fused_add_rms_norm, and their operands.
struct LayerMemory {
  std::int64_t arena = 0, unshared = 0;
  int steps = 0, copies = 0, fresh_results = 0;
};

LayerMemory layer_memory(const Context& context, const Graph& traced) {
  const auto graph = traced.clone();
  const auto plan = compile(*graph, context, {1, 512}, {}).plan;
  LayerMemory memory{.arena = plan->arena_bytes, .unshared = plan->unshared_bytes};
  for (const PlanStep& step : plan->steps) {
    memory.copies += step.op == "clone" ? 1 : 0;
    if (step.op != "fused_add_rms_norm") continue;
    ++memory.steps;
    for (const PlanView& result : step.results)
      memory.fresh_results += std::none_of(step.operands.begin(), step.operands.end(),
                                           [&](const PlanView& operand) { return operand.slot == result.slot; });
  }
  return memory;
}

TEST(Donation, TheFusedNormsOfADecoderLayerAllocateNothing) {
  const auto context = kernel_context();
  const auto given = small_layer(*context);
  // The same layer by an author who donates nothing, with kernels that overwrite their arguments, and without.
  const auto kept = given->clone();
  for (const auto& node : kept->nodes()) node->maybe_inplace = false;
  kept->inputs()[0]->donated = kept->inputs()[1]->donated = false;
  const LayerMemory with = layer_memory(*context, *given), without = layer_memory(*context, *kept);
  context->priorities.set("fused_add_rms_norm", {"native"});
  const LayerMemory native = layer_memory(*context, *kept);
  std::cout << fmt::format(
      "count: layer of 512 rows of 32 f32: arena with donation {} bytes, {} copies; without {} bytes, {} copies; by "
      "the "
      "op's meaning {} bytes (before sharing: {}, {}, {})\n",
      with.arena, with.copies, without.arena, without.copies, native.arena, with.unshared, without.unshared,
      native.unshared);
  EXPECT_EQ(with.steps, 2);
  EXPECT_EQ(with.copies, 0);
  EXPECT_EQ(with.fresh_results, 0);
  EXPECT_EQ(without.copies, 2);  // of the two inputs
  constexpr std::int64_t kActivation = 512 * 32 * 4;
  EXPECT_EQ(without.unshared, with.unshared + 2 * kActivation);
  EXPECT_LT(with.arena, without.arena);
  EXPECT_LT(with.arena, native.arena);
}

// A kernel that counts how often it is asked whether it supports a call, which is the first step of a choice.
TEST(Donation, ACompiledGraphChoosesNothingWhenItRuns) {
  const auto asked = std::make_shared<int>(0), ran = std::make_shared<int>(0);
  const auto context = kernel_context();
  Kernel counting = *context->kernels.find("silu_and_mul", "cpu");
  counting.provider = "counting";
  counting.supports = [asked](const KernelRequest&) {
    ++*asked;
    return Verdict::yes();
  };
  counting.run = [ran, run = counting.run](const KernelCall& call) {
    ++*ran;
    run(call);
  };
  context->kernels.add(std::move(counting));
  context->priorities.set("silu_and_mul", {"counting"});
  const auto graph = small_layer(*context);
  const LayerInputs inputs = layer_inputs(*graph, 3);
  const Compiled compiled = compile(*graph, *context, kRange, {});
  EXPECT_EQ(*asked, 1);
  Replay replay(compiled.plan, *context->threads);
  for (std::size_t i = 0; i < inputs.tensors.size(); ++i) replay.bind(i, inputs.copy(i));
  for (int step = 0; step < 1000; ++step) replay.run();
  EXPECT_EQ(*ran, 1000);
  EXPECT_EQ(*asked, 1);
}

}  // namespace weft::donation_test
