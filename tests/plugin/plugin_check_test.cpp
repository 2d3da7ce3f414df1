// weft plugin check: its findings, and that no fault of a plugin ends the program itself.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/plugin/workshop.h"
#include "tests/program_run.h"

namespace weft::plugin_check_test {

ProgramRun check(const std::string& library, const std::vector<std::string>& flags = {}) {
  std::vector<std::string> words{"plugin", "check", library, "-t", "2"};
  words.insert(words.end(), flags.begin(), flags.end());
  return run_weft(words);
}

// The line about one check begins as wanted and contains `part`.
void expect_failure(const std::string& library, const std::string& check_name, const std::string& part,
                    const std::vector<std::string>& flags = {}) {
  const ProgramRun run = check(library, flags);
  EXPECT_EQ(run.status, 2) << run.out << run.err;
  const std::size_t line = run.out.find("FAIL  kernel rms_norm@trial: " + check_name + ": ");
  ASSERT_NE(line, std::string::npos) << run.out;
  const std::string text = run.out.substr(line, run.out.find('\n', line) - line);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

constexpr const char* kRight = "normalize(x, weight, y, rows, columns, epsilon); return WEFT_OK;";

TEST(PluginCheck, PassesTheExamples) {
  for (const char* name : {"plugin_kernel", "plugin_platform"}) {
    const ProgramRun run = check(workshop().example(name));
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(run.out.find("FAIL"), std::string::npos);
  }
}

TEST(PluginCheck, SaysInJsonWhatItTried) {
  const ProgramRun run = check(workshop().example("plugin_kernel"), {"--json"});
  const nlohmann::json report = nlohmann::json::parse(run.out);
  EXPECT_EQ(report["name"], "example_kernel");
  EXPECT_EQ(report["passed"], true);
  EXPECT_EQ(report["brings"],
            nlohmann::json({"op example_soft_cap", "kernel example_soft_cap@example", "kernel rms_norm@example"}));
  std::vector<std::string> checks;
  for (const nlohmann::json& row : report["checks"])
    if (row["subject"] == "kernel rms_norm@example") checks.push_back(row["check"]);
  EXPECT_EQ(checks, (std::vector<std::string>{"supports a sample of its op", "stays inside its buffers and operands",
                                              "gives the same bits again", "agrees with the op's meaning",
                                              "gives a row the same bits alone as among others"}));
}

TEST(PluginCheck, AcceptsAKernelThatIsRight) {
  const ProgramRun run = check(workshop().rms_norm("right", kRight));
  EXPECT_EQ(run.status, 0) << run.out << run.err;
}

TEST(PluginCheck, FindsAWrongResult) {
  expect_failure(
      workshop().rms_norm("wrong", "normalize(x, weight, y, rows, columns, epsilon); y[5] += 0.01f; return 0;"),
      "agrees with the op's meaning", "element 5");
}

TEST(PluginCheck, FindsAWriteBesideAResult) {
  expect_failure(workshop().rms_norm("behind", std::string("if (columns == 100) y[rows * columns] = 0; ") + kRight),
                 "stays inside its buffers and operands", "wrote the byte 1 after result 0");
  expect_failure(workshop().rms_norm("far_behind", std::string("y[rows * columns + 16] = 0; ") + kRight), "runs",
                 "after result 0");
  expect_failure(workshop().rms_norm("before", std::string("((char*)y)[-3] = 0; ") + kRight),
                 "stays inside its buffers and operands", "wrote the byte 3 before result 0");
}

TEST(PluginCheck, FindsAReadFarOutsideAnOperand) {
  expect_failure(workshop().rms_norm("reader", std::string("if (((volatile char*)x)[rows * columns * 4 + 300] == 77) "
                                                           "return 5; ") +
                                                   kRight),
                 "runs", "after operand x");
}

TEST(PluginCheck, FindsAWriteToAnOperand) {
  expect_failure(workshop().rms_norm("writer", std::string(kRight).insert(0, "x[1] = x[1] + 1; ")),
                 "stays inside its buffers and operands", "overwrote operand x, which it does not declare");
}

TEST(PluginCheck, FindsAResultThatIsNotAllWritten) {
  expect_failure(workshop().rms_norm("partial", "normalize(x, weight, y, rows - 1, columns, epsilon); return WEFT_OK;"),
                 "gives the same bits again", "result 0");
}

TEST(PluginCheck, FindsARowThatDependsOnOthers) {
  expect_failure(workshop().rms_norm("dependent",
                                     "normalize(x, weight, y, rows, columns, epsilon + (rows > 1 ? 1e-6 : 0)); "
                                     "return WEFT_OK;"),
                 "gives a row the same bits alone as among others", "row 0");
}

TEST(PluginCheck, ReportsACrash) {
  expect_failure(workshop().rms_norm("crash", "*(volatile int*)8 = 1; return WEFT_OK;"), "runs",
                 "crashed with signal 11");
  expect_failure(workshop().rms_norm("aborts", "abort(); return WEFT_OK;"), "runs", "crashed with signal 6");
  expect_failure(workshop().rms_norm("exits", "exit(0); return WEFT_OK;"), "runs", "ended the process with status 0");
}

TEST(PluginCheck, ReportsAStatusAndAnException) {
  expect_failure(workshop().rms_norm("status_in_check", "return 9;"), "runs", "failed with status 9");
  expect_failure(workshop().rms_norm("thrower_in_check", "throw std::runtime_error(\"mine\");", true), "runs", "mine");
}

TEST(PluginCheck, ReportsWhatTakesTooLong) {
  expect_failure(workshop().rms_norm("hangs", "for (volatile int i = 0; i < 1;) {} return WEFT_OK;"), "runs",
                 "took longer than 0.5 s", {"--timeout", "0.5"});
}

TEST(PluginCheck, GoesOnBehindACrash) {
  const std::string library = workshop().plugin(
      "two",
      "#include <string.h>\n"
      "static weft_status crash(const weft_call* c, void* s, weft_message* m) {(void)c;(void)s;(void)m; "
      "*(volatile int*)8 = 1; return 0; }\n"
      "static weft_status copy(const weft_call* c, void* s, weft_message* m) {(void)s;(void)m; int64_t n = 1;\n"
      "for (int i = 0; i < c->operands[0].rank; ++i) n *= c->operands[0].size[i];\n"
      "const int64_t size = c->operands[0].dtype == WEFT_F32 ? 4 : 2;\n"
      "memcpy(c->results[0].data, c->operands[0].data, (size_t)(n * size)); return 0; }\n",
      "weft_kernel k; memset(&k, 0, sizeof k); k.provider = \"two\"; k.op = \"neg\"; k.run = crash; "
      "k.schema = \"neg(Tensor x) -> Tensor\"; host->add_kernel(registry, &k); k.op = \"clone\"; k.run = copy; "
      "k.schema = \"clone(Tensor x) -> Tensor\"; return host->add_kernel(registry, &k);");
  const ProgramRun run = check(library);
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.out.find("FAIL  kernel neg@two: runs: crashed with signal 11"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("ok    kernel clone@two: agrees with the op's meaning"), std::string::npos) << run.out;
}

TEST(PluginCheck, FindsAShapeRuleThatKnowsOneSizeAlone) {
  const std::string library = workshop().plugin(
      "fixed",
      "#include <string.h>\n"
      "static weft_status infer(const weft_request* q, weft_results* r, void* s, weft_message* m) "
      "{(void)s;(void)m; return q->host->result_type(r, 0, \"f32[3, 4]\"); }\n"
      "static weft_status run(const weft_call* c, void* s, weft_message* m) {(void)s;(void)m; "
      "memset(c->results[0].data, 0, 48); return 0; }\n"
      "static const weft_sample_tensor x = {\"x\", WEFT_F32, 2, {3, 4}, WEFT_FILL_NORMAL, 0};\n"
      "static const weft_sample sample = {&x, 1, NULL};\n",
      "weft_op op; memset(&op, 0, sizeof op); op.schema = \"fixed(Tensor x) -> Tensor\"; op.infer = infer; "
      "op.samples = &sample; op.sample_count = 1; host->add_op(registry, &op); "
      "weft_kernel k; memset(&k, 0, sizeof k); k.provider = \"mine\"; k.op = \"fixed\"; k.run = run; "
      "k.schema = \"fixed(Tensor x) -> Tensor\"; return host->add_kernel(registry, &k);");
  const ProgramRun run = check(library);
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.out.find("FAIL  op fixed: the shape rule holds for every number of rows"), std::string::npos)
      << run.out;
}

TEST(PluginCheck, ReportsACrashAtLoad) {
  const ProgramRun run = check(workshop().plugin("dead", "", "*(volatile int*)8 = 1; return WEFT_OK;"));
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.out.find("FAIL  plugin: loads: crashed with signal 11"), std::string::npos) << run.out;
}

TEST(PluginCheck, ReportsWhatDoesNotLoad) {
  const ProgramRun run = check("/nonexistent/libmine.so");
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.out.find("FAIL  plugin: loads: [plugin] \"/nonexistent/libmine.so\" is not a file"), std::string::npos)
      << run.out;
}

}  // namespace weft::plugin_check_test
