#include "plugin/registrations.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "compiler/pipeline.h"
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/shape_rules.h"
#include "ops/add.h"
#include "ops/mul_scalar.h"
#include "tests/thrown_message.h"

namespace weft::registrations_test {

constexpr const char* kRmsNorm = "rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor";

Registrations named() { return Registrations("the test's own"); }
void nothing(const KernelCall&) {}

std::shared_ptr<Context> context_with(const Registrations& registrations, const Priorities& priorities = {}) {
  Options options;
  options.threads = 1;
  options.backend = "eager";
  options.ir_op_priority = priorities;
  return make_context(options, registrations);
}

// The message with which the Context is refused.
std::string refusal(const Registrations& registrations) {
  const std::string message = message_of([&] { context_with(registrations); });
  EXPECT_NE(message, "") << "was not refused";
  return message;
}

void expect_refused(const Registrations& registrations, const std::string& part) {
  const std::string message = refusal(registrations);
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_NE(message.find("the test's own"), std::string::npos) << message;
  EXPECT_EQ(message.find(" (at "), std::string::npos) << message;
}

// Twice its argument, by its meaning.
void define_doubled(OpDefinition& op) {
  op.schema("doubled(Tensor x) -> Tensor");
  op.means([](Evaluator&, const Values& v, const Attributes&) { return Values{add(v[0], v[0])}; });
  op.sample({{"x", {2, 3}}});
}

// The same, opaque; may be called in place.
void define_opaque(OpDefinition& op) {
  op.schema("opaque(Tensor x) -> Tensor").gives_like("x");
  op.allow_inplace().donates("x", 0);
  op.sample({{"x", {2, 3}}});
}

void run_opaque(const KernelCall& call) {
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i)
    call.results[0].as<float>()[i] = 2 * call.operands[0].as<float>()[i];
}

// The results of one op on [1, 2, 3], and the argument afterwards.
struct Ran {
  std::vector<float> result, argument;
};
Ran run_eagerly(const Context& context, const char* op) {
  EagerEvaluator eager(context, {1, 1});
  const float values[] = {1, 2, 3};
  const Tensor x = Tensor::from_bytes(Meta::tensor(DType::f32, {1, 3}), values);
  const Values results = call(op, {eager.value(x)}, {});
  const float* y = results[0].tensor().as<float>();
  return {{y, y + 3}, {x.as<float>(), x.as<float>() + 3}};
}

std::string lowered(const Context& context, const std::string& body) {
  const auto graph =
      parse_graph("graph g(%x: f32[s0, 3]) stage=traced where s0 in [1, 8] {\n" + body + "\n}", context.ops);
  PassRunnerOptions options;
  options.stop_after = Stage::lowered;
  compile(*graph, context, {1, 8}, options);
  return display(*graph);
}

TEST(Registrations, RefuseASchemaThatDoesNotParse) {
  Registrations mine = named();
  mine.register_op("broken", [](OpDefinition& op) { op.schema("broken(Tensor x"); });
  EXPECT_NE(refusal(mine).find("the test's own"), std::string::npos);
  Registrations kernel = named();
  kernel.register_impl("rms_norm", "mine", nothing, {.schema = "rms_norm(Tensor"});
  EXPECT_NE(refusal(kernel).find("the test's own"), std::string::npos);
}

TEST(Registrations, RefuseNamesThatAreInvalid) {
  Registrations op = named();
  op.register_op("Doubled", [](OpDefinition& definition) {
    definition.schema("Doubled(Tensor x) -> Tensor").gives_like("x");
    definition.sample({{"x", {2}}});
  });
  op.register_impl("Doubled", "mine", nothing);
  EXPECT_NE(refusal(op).find("Doubled"), std::string::npos);
  Registrations provider = named();
  provider.register_impl("rms_norm", "My-Own", nothing);
  expect_refused(provider, "[rms_norm@My-Own] a provider's name must match [a-z_][a-z0-9_]*");
  Registrations pass = named();
  pass.register_pass("1st", Stage::pure, [](Graph&, PassContext&) { return PassResult(); });
  expect_refused(pass, "a name must match");
}

TEST(Registrations, RefuseAnOpWhoseNameIsTaken) {
  Registrations mine = named();
  mine.register_op("rms_norm", [](OpDefinition& op) {
    op.schema(kRmsNorm).gives_like("x");
    op.sample({{"x", {2}}}, {{"epsilon", 1e-6}});
  });
  expect_refused(mine, "op rms_norm is already registered");
}

TEST(Registrations, RefuseAnOpThatNobodyCanRun) {
  Registrations nothing_said = named();
  nothing_said.register_op("broken", [](OpDefinition& op) {
    op.schema("broken(Tensor x) -> Tensor");
    op.sample({{"x", {2}}});
  });
  expect_refused(nothing_said, "neither a meaning nor a shape rule");
  Registrations no_kernel = named();
  no_kernel.register_op("opaque", define_opaque);
  expect_refused(no_kernel, "[opaque] has neither a meaning nor a kernel");
}

TEST(Registrations, RefuseAKernelOfAnotherSchema) {
  const std::pair<const char*, const char*> cases[] = {
      {"rms_norm(Tensor y, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor", "parameter 0"},
      {"rms_norm(Tensor x, Tensor weight, float epsilon, int? variance_size=None) -> Tensor", "weight is of another"},
      {"rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=4) -> Tensor", "another default"},
      {"rms_norm(Tensor x, Tensor? weight, float epsilon=1e-05, int? variance_size=None) -> Tensor", "epsilon has"},
      {"rms_norm(Tensor x, Tensor? weight, float epsilon) -> Tensor", "number of parameters"},
      {"rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> (Tensor, Tensor)", "results"},
      {"silu(Tensor x) -> Tensor", "the op's name"},
  };
  for (const auto& [schema, part] : cases) {
    Registrations mine = named();
    mine.register_impl("rms_norm", "mine", nothing, {.schema = schema});
    expect_refused(mine, part);
  }
  Registrations mine = named();
  mine.register_impl("rms_norm", "mine", nothing, {.schema = kRmsNorm});
  EXPECT_NE(context_with(mine)->kernels.find("rms_norm", "mine"), nullptr);
}

TEST(Registrations, RefuseAProviderThatIsThereAndNameBothOrigins) {
  Registrations mine = named();
  mine.register_impl("rms_norm", "cpu", nothing);
  expect_refused(mine, "[rms_norm@cpu] is already registered, by src/kernels/cpu/rms_norm.cpp");
  Registrations twice = named();
  twice.register_impl("rms_norm", "mine", nothing);
  twice.register_impl("rms_norm", "mine", nothing);
  expect_refused(twice, "[rms_norm@mine] is already registered, by the test's own");
}

TEST(Registrations, RefuseReservedProviders) {
  for (const char* name : {"native", "reference", "fused"}) {
    Registrations mine = named();
    mine.register_impl("rms_norm", name, nothing);
    expect_refused(mine, "reserved");
  }
}

TEST(Registrations, RefuseWritesThatTheOpDoesNotAllow) {
  Registrations closed = named();
  closed.register_impl("rms_norm", "mine", nothing, {.writes = {0}});
  expect_refused(closed, "rms_norm does not allow in-place calls");
  Registrations other = named();
  other.register_impl("fused_add_rms_norm", "mine", nothing, {.writes = {0, 2}});
  expect_refused(other, "writes over weight, which fused_add_rms_norm does not donate");
}

TEST(Registrations, RefuseAnUnknownOpAndNameTheNearest) {
  Registrations kernel = named();
  kernel.register_impl("rms_nrom", "mine", nothing);
  expect_refused(kernel, "did you mean \"rms_norm\"?");
  Registrations priority = named();
  priority.register_priority("rms_nrom", {"cpu"});
  expect_refused(priority, "did you mean \"rms_norm\"?");
  Registrations provider = named();
  provider.register_impl("rms_norm", "mine", nothing);
  provider.register_priority("rms_norm", {"mien"});
  expect_refused(provider, "did you mean \"mine\"?");
}

TEST(Registrations, RefuseAKernelWithoutCodeOrRows) {
  Registrations code = named();
  code.register_impl("rms_norm", "mine", {});
  expect_refused(code, "has no code");
  Registrations rows = named();
  rows.register_impl("rms_norm", "mine", nothing, {.rows = {8, 4}});
  expect_refused(rows, "which is not a range");
}

TEST(Registrations, RefusePassesAndPatternsThatDoNotFit) {
  const auto run = [](Graph&, PassContext&) { return PassResult(); };
  Registrations taken = named();
  taken.register_pass("lower", Stage::pure, run);
  expect_refused(taken, "[pass] lower is there already");
  Registrations twice = named();
  twice.register_pass("mine", Stage::pure, run);
  twice.register_pass("mine", Stage::lowered, run);
  expect_refused(twice, "[pass] mine is there already");
  Registrations pattern = named();
  pattern.register_patterns("pattern p(?x) {");
  EXPECT_NE(refusal(pattern).find("the test's own"), std::string::npos);
}

TEST(Registrations, ReportWhatPatternsWereTriedOn) {
  const auto text = [](const std::string& after) {
    return "pattern p(?x) {\n before {\n%y = replace_nan(?x, value=0.0)\nreturn %y\n }\n after {\n" + after +
           "\nreturn %y\n }\n}\n";
  };
  Registrations right = named();
  right.register_patterns(text("%a = replace_nan(?x, value=0.0)\n%y = replace_nan(%a, value=1.0)"));
  std::vector<std::string> notes;
  make_context(Options(), std::move(right), std::nullopt, &notes);
  ASSERT_EQ(notes.size(), 1u);
  for (const char* part : {"pattern p (the test's own)", "tried on", "bf16", "NaN"})
    EXPECT_NE(notes[0].find(part), std::string::npos) << notes[0];
  Registrations wrong = named();
  wrong.register_patterns(text("%y = mul_scalar(?x, value=1.0)"));
  EXPECT_NE(refusal(wrong).find("where ?x is nan"), std::string::npos) << refusal(wrong);
}

TEST(Registrations, LeaveNothingBehindWhenRefused) {
  Registrations mine = named();
  mine.register_op("doubled", define_doubled);
  mine.register_impl("rms_norm", "mine", nothing);
  mine.register_impl("rms_norm", "native", nothing);
  refusal(mine);
  const auto context = context_with(named());
  EXPECT_EQ(context->ops.find("doubled"), nullptr);
  EXPECT_EQ(context->kernels.find("rms_norm", "mine"), nullptr);
}

TEST(Registrations, BringAnOpWithAMeaning) {
  Registrations mine = named();
  mine.register_op("doubled", define_doubled);
  const auto context = context_with(mine);
  EXPECT_EQ(run_eagerly(*context, "doubled").result, (std::vector<float>{2, 4, 6}));
  EXPECT_NE(lowered(*context, "%y = doubled(%x)\nreturn %y").find(" add@"), std::string::npos);
}

TEST(Registrations, PutDefaultsBetweenTheUsersListAndTheDevices) {
  Registrations mine = named();
  mine.register_impl("silu", "mine", nothing);
  mine.register_impl("silu", "other", nothing);
  EXPECT_EQ(context_with(mine)->priorities.list("silu"), (std::vector<std::string>{"cpu", "native"}));
  mine.register_priority("silu", {"mine", "other"});
  EXPECT_EQ(context_with(mine)->priorities.list("silu"), (std::vector<std::string>{"mine", "other", "cpu", "native"}));
  EXPECT_EQ(context_with(mine, {{"silu", {"other"}}})->priorities.list("silu"),
            (std::vector<std::string>{"other", "mine", "cpu", "native"}));
}

TEST(Registrations, PutPrioritiesInFrontOfTheDevicesDefaults) {
  Registrations mine = named();
  mine.register_priority("attention", {"native"});
  Options options;
  options.device = "fake-cuda";
  EXPECT_EQ(make_context(options, mine)->priorities.list("attention").front(), "native");
}

TEST(Registrations, LetAnOpaqueOpRunEverywhere) {
  for (const bool writes : {false, true}) {
    Registrations mine = named();
    mine.register_op("opaque", define_opaque);
    const auto run_in_place = [](const KernelCall& call) {
      EXPECT_EQ(call.results[0].data, call.operands[0].data);
      run_opaque(call);
    };
    mine.register_impl("opaque", "mine", writes ? Registrations::Run(run_in_place) : Registrations::Run(run_opaque),
                       {.writes = writes ? std::vector<int>{0} : std::vector<int>{}});
    for (const char* first : {"mine", "native"}) {
      const auto context = context_with(mine, {{"opaque", {first}}});
      const Ran ran = run_eagerly(*context, "opaque");
      EXPECT_EQ(ran.result, (std::vector<float>{2, 4, 6}));
      EXPECT_EQ(ran.argument, (std::vector<float>{1, 2, 3}));
    }
    const auto context = context_with(mine);
    const std::string text = lowered(*context, "%y = opaque(%x)\n%z = add(%y, %x)\nreturn %z");
    EXPECT_NE(text.find(writes ? "opaque@mine.inplace(&%clone" : "opaque@mine(%x)"), std::string::npos) << text;
    EXPECT_EQ(context->kernels.find("opaque", "mine")->launch_graph, LaunchGraphClass::never);
    EXPECT_FALSE(context->kernels.find("opaque", "mine")->batch_invariant);
  }
}

TEST(Registrations, SayWhyAnOpaqueOpCannotRun) {
  const auto message = [](KernelTraits traits, bool batch_invariant) -> std::string {
    Registrations mine = named();
    mine.register_op("opaque", define_opaque);
    mine.register_impl("opaque", "mine", run_opaque, std::move(traits));
    Options options;
    options.threads = 1;
    options.batch_invariant = batch_invariant;
    const auto context = make_context(options, mine);
    return message_of([&] { run_eagerly(*context, "opaque"); });
  };
  const auto refuses = [](const KernelRequest& request) {
    return request.operands[0]->shape[0] == Dim(1) ? Verdict::no("is not for one row") : Verdict::yes();
  };
  EXPECT_NE(message({.supports = refuses}, false).find("is not for one row"), std::string::npos);
  EXPECT_NE(message({.supported = [](const DeviceDescription&) { return Verdict::no("wants another device"); }}, false)
                .find("wants another device"),
            std::string::npos);
  EXPECT_NE(message({}, true).find("--batch-invariant cannot hold"), std::string::npos);
  EXPECT_EQ(message({.batch_invariant = true}, true), "");
}

TEST(Registrations, RunPassesBehindThoseOfTheirStage) {
  std::vector<std::string> seen;
  Registrations mine = named();
  for (const Stage stage : {Stage::split, Stage::lowered, Stage::pure, Stage::traced})
    mine.register_pass("at_" + std::string(stage_text(stage)), stage, [&seen, stage](Graph& graph, PassContext&) {
      EXPECT_EQ(graph.stage, stage);
      return PassResult{.counts = {{"seen", 1}}};
    });
  const auto context = context_with(mine);
  for (const PassRow& row : passes_of(*context)) seen.push_back(row.name);
  const auto at = [&](const std::string& name) { return std::find(seen.begin(), seen.end(), name) - seen.begin(); };
  EXPECT_EQ(at("at_traced") + 1, at("functionalize"));
  EXPECT_EQ(at("at_pure") + 1, at("lower"));
  EXPECT_EQ(at("at_lowered") + 1, at("split"));
  EXPECT_EQ(at("at_split") + 1, static_cast<std::ptrdiff_t>(seen.size()));
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 3]) stage=traced where s0 in [1, 8] {\n%y = neg(%x)\nreturn %y\n}", context->ops);
  EXPECT_EQ(compile(*graph, *context, {1, 8}, {}).record.passes.size(), seen.size());
}

}  // namespace weft::registrations_test
