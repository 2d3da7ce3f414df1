#include "plugin/plugin.h"

#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <weft/weft_plugin.h>

#include "base/error.h"
#include "base/files.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "compiler/pipeline.h"
#include "compiler/run/eager.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "runtime/replay.h"
#include "tests/plugin/workshop.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::plugin_test {

std::shared_ptr<Context> context_with(const std::string& library) {
  Options options;
  options.threads = 2;
  options.plugin = {library};
  return make_context(options);
}

void expect_refused(const std::string& library, const std::vector<std::string>& parts) {
  const ProgramRun run = run_weft({"info", "--plugin", library});
  for (const std::string& part : parts) EXPECT_EQ(breach_of_refusal(run, part), "");
}

// The answer of a tiny Llama of random weights.
std::string answer(const std::vector<std::string>& flags) {
  static const std::string model = SampleCheckpoint(make_model_registry().find("llama", "the test"))
                                       .write_gguf(workshop().folder(), "tiny.gguf", DType::q4_1);
  std::vector<std::string> words{"complete", model, "-p", "Once upon a time", "-n", "12", "--temp", "0", "-t", "2"};
  words.insert(words.end(), flags.begin(), flags.end());
  const ProgramRun run = run_weft(words);
  EXPECT_EQ(run.status, 0) << run.err;
  return run.out;
}

// The message of the UserError with which rms_norm@trial of a library ends.
std::string failure_of_rms_norm(const std::string& library) {
  Options options;
  options.plugin = {library};
  options.ir_op_priority = {{"rms_norm", {"trial"}}};
  const auto context = make_context(options);
  EagerEvaluator eager(*context, {1, 64});
  const Value x = eager.value(Tensor::empty(Meta::tensor(DType::f32, {64, 8})));
  return message_of([&] { call("rms_norm", {x, Value()}, {{"epsilon", 1e-5}}); });
}

TEST(Plugin, ExampleKernelAnswersAsTheProgramDoes) {
  const std::string library = workshop().example("plugin_kernel");
  const std::string wanted = answer({});
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(answer({"--plugin", library, "--ir-op-priority.rms_norm=example"}), wanted);
  EXPECT_EQ(answer({"--plugin", library, "--ir-op-priority.rms_norm=example", "--enforce-eager"}), wanted);
}

TEST(Plugin, ExamplePlatformAnswersAsTheProgramDoes) {
  EXPECT_EQ(answer({"--plugin", workshop().example("plugin_platform")}), answer({}));
}

TEST(Plugin, SeveralAreLoadedAlsoFromTheEnvironment) {
  const std::string list = workshop().example("plugin_platform") + "," + workshop().example("plugin_kernel");
  const ProgramRun run = run_weft({"dump", "kernels"}, "", {{"WEFT_PLUGINS", list}});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("plain C, a row at a time"), std::string::npos);
}

TEST(Plugin, AnOpaqueOpRunsInAGraphAsItDoesEagerly) {
  const auto context = context_with(workshop().example("plugin_kernel"));
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 6]) stage=traced where s0 in [1, 8] {\n"
      "  %y = neg(%x)\n  %z = example_soft_cap(%y, cap=2.0)\n  %n = rms_norm(%z, none, epsilon=1e-05)\n  return %n, "
      "%z\n}",
      context->ops);
  const Compiled compiled = compile(*graph, *context, {1, 8}, {});
  EXPECT_NE(display(*compiled.record.split).find("example_soft_cap@example(%y, cap=2.0)"), std::string::npos)
      << display(*compiled.record.split);
  Replay replay(compiled.plan, *context->threads);
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {4, 6}));
  for (int i = 0; i < 24; ++i) x.as<float>()[i] = 0.4F * static_cast<float>(i) - 5;
  replay.bind(0, x);
  replay.run();
  EagerEvaluator eager(*context, {1, 8});
  const Value z = call("example_soft_cap", {call("neg", {eager.value(x)}, {})[0]}, {{"cap", 2.0}})[0];
  for (int i = 0; i < 24; ++i) {
    const float wanted = static_cast<float>(2 * std::tanh(-x.as<float>()[i] / 2.0));
    EXPECT_EQ(z.tensor().as<float>()[i], wanted);
    EXPECT_EQ(replay.result(1).as<float>()[i], wanted);
  }
}

TEST(Plugin, AnOpaqueOpRefusesByItsShapeRule) {
  const auto context = context_with(workshop().example("plugin_kernel"));
  EagerEvaluator eager(*context, {1, 1});
  const std::string message = message_of([&] {
    call("example_soft_cap", {eager.value(Tensor::empty(Meta::tensor(DType::f16, {1, 3})))}, {});
  });
  EXPECT_NE(message.find("x must be f32, but is f16[1, 3]"), std::string::npos) << message;
  EXPECT_NE(message.find("plugin example_kernel"), std::string::npos) << message;
}

TEST(Plugin, APriorityOfAPlatformYieldsToTheUsers) {
  const std::string library = workshop().example("plugin_platform");
  EXPECT_EQ(context_with(library)->priorities.list("rms_norm"), (std::vector<std::string>{"native", "cpu"}));
  Options options;
  options.plugin = {library};
  options.ir_op_priority = {{"rms_norm", {"cpu"}}};
  EXPECT_EQ(make_context(options)->priorities.list("rms_norm")[0], "cpu");
}

TEST(Plugin, APassRewritesTheTextOfAGraph) {
  const auto context = context_with(workshop().example("plugin_platform"));
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 6]) stage=pure where s0 in [1, 8] {\n"
      "  %a = mul_scalar(%x, value=1.0)\n  %ab = mul_scalar(%a, value=1.0)  #@ layer=2\n"
      "  %b = mul_scalar(%ab, value=2.0)\n  %c = add(%b, %a)\n  return %c\n}",
      context->ops);
  PassRunnerOptions options;
  options.stop_after = Stage::pure;
  const Compiled compiled = compile(*graph, *context, {1, 8}, options);
  EXPECT_EQ(display(*graph),
            "graph g(%x: f32[s0, 6]) stage=pure where s0 in [1, 8] {\n"
            "  %b: f32[s0, 6] = mul_scalar(%x, value=2.0)\n"
            "  %c: f32[s0, 6] = add(%b, %x)\n"
            "  return %c\n}\n");
  EXPECT_EQ(compiled.record.passes.back().name, "drop_unit_scale");
}

TEST(Plugin, EveryStageOfAModelGoesThroughTextAndBack) {
  std::string passes;
  for (const char* stage : {"traced", "pure", "lowered", "split"})
    passes += fmt::format("{{\"same_{0}\", \"{0}\", same, NULL}}, ", stage);
  const std::string library = workshop().plugin(
      "same",
      "static weft_status same(const weft_host* host, const char* graph, weft_text* changed, void* state,\n"
      "                        weft_message* message) { (void)state; (void)message; return host->set_text(changed, "
      "graph); }\n"
      "static const weft_pass passes[] = {" +
          passes + "};\n",
      "for (int i = 0; i < 4; ++i) host->add_pass(registry, &passes[i]);\n"
      "return WEFT_OK;");
  EXPECT_EQ(answer({"--plugin", library}), answer({}));
}

// The message about a plugin's pass whose function has this body; "" if it is correct.
std::string failure_of_pass(const std::string& name, const std::string& body) {
  const std::string library = workshop().plugin(
      name,
      "static weft_status run(const weft_host* host, const char* graph, weft_text* changed, void* state,\n"
      "                       weft_message* message) {\n  (void)host; (void)graph; (void)changed; (void)state; "
      "(void)message;\n" +
          body + "\n}\n",
      "static const weft_pass pass = {\"trial\", \"pure\", run, NULL}; return host->add_pass(registry, &pass);");
  const auto context = context_with(library);
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 6]) stage=pure where s0 in [1, 8] {\n  %y = neg(%x)\n  return %y\n}", context->ops);
  const std::string message = message_of([&] { compile(*graph, *context, {1, 8}, {}); });
  EXPECT_EQ(message == "", message.find("plugin " + name) == std::string::npos) << message;
  return message;
}

TEST(Plugin, APassThatBreaksTheGraphIsRefused) {
  const auto graph_text = [](const std::string& inputs, const std::string& rest) {
    return "return host->set_text(changed, \"graph g(" + inputs + ") stage=" + rest + "\");";
  };
  EXPECT_NE(failure_of_pass("pass_garbage", "return host->set_text(changed, \"garbage\");").find("garbage"),
            std::string::npos);
  EXPECT_NE(failure_of_pass("pass_stage", graph_text("%x: f32[s0, 6]", "traced where s0 in [1, 8] { return %x }"))
                .find("must leave stage pure"),
            std::string::npos);
  EXPECT_NE(failure_of_pass("pass_inputs",
                            graph_text("%z: f32[s0, 6]", "pure where s0 in [1, 8] {\\n%y = neg(%z)\\nreturn %y\\n}"))
                .find("must keep the inputs"),
            std::string::npos);
  EXPECT_NE(
      failure_of_pass("pass_result", graph_text("%x: f32[s0, 6]",
                                                "pure where s0 in [1, 8] {\\n%y = cast(%x, dtype=f16)\\nreturn %y\\n}"))
          .find("must keep the types of the results"),
      std::string::npos);
  EXPECT_NE(failure_of_pass("pass_unknown",
                            graph_text("%x: f32[s0, 6]",
                                       "pure where s0 in [1, 8] {\\n%y: f32[s0, 6] = unheard(%x)\\nreturn %y\\n}"))
                .find("unheard"),
            std::string::npos);
  EXPECT_NE(failure_of_pass("pass_failing", "WEFT_SAY(message, \"no %s\", \"memory\"); return WEFT_ERROR;")
                .find("failed: no memory"),
            std::string::npos);
  EXPECT_EQ(failure_of_pass("pass_idle", "return WEFT_OK;"), "");
}

TEST(Plugin, WhatIsNoPluginIsRefused) {
  const std::string text = workshop().folder() / "text.so";
  std::ofstream(text) << "this is no library";
  expect_refused("/nonexistent/libmine.so", {"[plugin]", "is not a file"});
  expect_refused(workshop().folder().path(), {"is not a file"});
  expect_refused(text, {"not a shared library that can be loaded"});
  expect_refused(workshop().library("entryless", "int unused_symbol(void) { return 1; }\n"),
                 {"does not export weft_plugin_entry"});
}

// dlopen would map pages after the end of the file, and an access to these ends the process.
TEST(Plugin, AFileThatIsCutOffIsRefused) {
  const std::string whole =
      read_file(workshop().library("cut_off", "int unused_symbol(void) { return 1; }\n"), 1 << 24);
  for (const std::size_t bytes : {1, 40, 64, 200, 2000}) {
    ASSERT_LT(bytes, whole.size());
    const std::string path = workshop().folder() / fmt::format("libcut{}.so", bytes);
    std::ofstream(path, std::ios::binary) << whole.substr(0, bytes);
    expect_refused(path, {path, "is not a shared library that can be loaded"});
    if (bytes >= 64) expect_refused(path, {"it ends before a part that its header names"});
  }
}

TEST(Plugin, AnotherVersionOfTheHeaderIsRefused) {
  expect_refused(workshop().library("old",
                                    "#include <stdint.h>\nstatic const uint32_t version[8] = {77};\n"
                                    "const void* weft_plugin_entry(void) { return version; }\n"),
                 {fmt::format("was built for version 77 of weft_plugin.h, but this program has version {}",
                              WEFT_PLUGIN_ABI_VERSION)});
  expect_refused(workshop().library("empty", "const void* weft_plugin_entry(void) { return 0; }\n"), {"gives nothing"});
}

TEST(Plugin, AnUndefinedSymbolIsToldByName) {
  expect_refused(workshop().plugin("unlinked", "void nobody_has_this(void);\n", "nobody_has_this(); return WEFT_OK;"),
                 {"nobody_has_this"});
}

TEST(Plugin, WhatItFailsToBringIsRefusedWithItsName) {
  expect_refused(workshop().plugin("failing", "", "WEFT_SAY(message, \"the license of %s is over\", \"x\");return 7;"),
                 {"the license of x is over", "plugin failing"});
  expect_refused(
      workshop().plugin("throwing", "#include <stdexcept>\n", "throw std::runtime_error(\"at load\");", true),
      {"threw an exception: at load", "plugin throwing"});
  expect_refused(workshop().plugin("throwing_int", "", "throw 5;", true), {"threw an exception of a type of its own"});
}

TEST(Plugin, ADuplicateProviderIsRefusedWithBothOrigins) {
  const std::string first = workshop().rms_norm("first", "return WEFT_OK;");
  const std::string second = workshop().rms_norm("second", "return WEFT_OK;");
  expect_refused(first + "," + second, {"[rms_norm@trial] is already registered, by plugin first", "plugin second"});
  expect_refused(first + "," + first, {"is already registered"});
}

TEST(Plugin, MistakesInItsStructuresAreRefused) {
  const std::string kernel =
      "#include <string.h>\nstatic weft_status run(const weft_call* c, void* s, weft_message* m) {"
      "(void)c; (void)s; (void)m; return WEFT_OK; }\n";
  const std::string start =
      "weft_kernel k; memset(&k, 0, sizeof k); k.op = \"silu\"; k.provider = \"trial\"; k.run = run; "
      "k.schema = \"silu(Tensor x) -> Tensor\";";
  const std::string end = "host->add_kernel(registry, &k); return WEFT_OK;";  // an ignored status
  expect_refused(workshop().plugin("no_schema", kernel, start + "k.schema = NULL;" + end),
                 {"does not state the schema"});
  expect_refused(workshop().plugin("no_run", kernel, start + "(void)run; k.run = NULL;" + end),
                 {"has no function `run`"});
  expect_refused(workshop().plugin("flags", kernel, start + "k.flags = 4096;" + end), {"unknown flags"});
  expect_refused(workshop().plugin("writes", kernel,
                                   start +
                                       "static const char* const w[] = {\"y\"}; k.writes = w; "
                                       "k.write_count = 1;" +
                                       end),
                 {"overwrites \"y\""});
  expect_refused(workshop().plugin("op_without_rule", "#include <string.h>\n",
                                   "weft_op op; memset(&op, 0, sizeof op); op.schema = \"f(Tensor x) -> Tensor\"; "
                                   "return host->add_op(registry, &op);"),
                 {"[f] has neither a meaning nor a shape rule"});
}

TEST(Plugin, AStatusOfAKernelBecomesAnErrorThatNamesIt) {
  EXPECT_EQ(
      failure_of_rms_norm(workshop().rms_norm("status", "WEFT_SAY(message, \"out of %s\", \"luck\"); return 9;")),
      "[rms_norm@trial] run failed: out of luck (plugin status, " + workshop().folder().path() + "/libstatus.so)");
  EXPECT_NE(failure_of_rms_norm(workshop().rms_norm("status_only", "return 9;")).find("failed with status 9"),
            std::string::npos);
}

TEST(Plugin, AnExceptionOfAKernelBecomesAnErrorThatNamesIt) {
  const std::string direct =
      failure_of_rms_norm(workshop().rms_norm("thrower", "throw std::runtime_error(\"of the kernel\");", true));
  EXPECT_NE(direct.find("[rms_norm@trial] run threw an exception: of the kernel (plugin thrower"), std::string::npos)
      << direct;
  const std::string chunk = failure_of_rms_norm(workshop().rms_norm(
      "chunk_thrower",
      "struct C { static weft_status body(void*, int64_t, int32_t) { throw std::runtime_error(\"of a chunk\"); } };\n"
      "call->host->parallel(call->threads, 64, C::body, nullptr); return WEFT_OK;",
      true));
  EXPECT_NE(chunk.find("of a chunk (plugin chunk_thrower"), std::string::npos) << chunk;
}

TEST(Plugin, TheHeaderCompilesAsCAndAsCPlusPlus) {
  workshop().library("header_c", "#include <weft/weft_plugin.h>\nint unused(void) { return WEFT_OK; }\n");
  workshop().library("header_cpp", "#include <weft/weft_plugin.h>\nint unused() { return WEFT_OK; }\n", true);
}

}  // namespace weft::plugin_test
