// The report of `weft explain` agrees with the compiler.

#include "report/explain.h"

#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/token_ranges.h"
#include "ir/parse.h"
#include "tests/small_layer.h"

namespace weft::explain_test {

class ExplainTest : public testing::Test {
 protected:
  ExplainTest() : context_(kernel_context()), traced_(small_layer(*context_)) {
    Kernel few = *context_->kernels.find("silu_and_mul", "cpu");
    few.provider = "few";
    few.rows = {1, 4};
    context_->kernels.add(std::move(few));
    context_->priorities.set("silu_and_mul", {"few"});
    explanation_.model = "layer";
    explanation_.version = "1.2.3";
    explanation_.records =
        compile_ranges(*traced_, *context_, token_ranges(*traced_, *context_, 64).ranges, {}).records;
    explanation_.differences = {
        {.option = "threads", .requested = "64", .effective = "2", .reason = "the machine has 2"}};
    explanation_.times = {.phases = {{"trace", 1.0}, {"compile", 2.5}}, .total = 3.5};
    json_ = explain_json(explanation_);
  }

  std::shared_ptr<Context> context_;
  std::shared_ptr<Graph> traced_;
  Explanation explanation_;
  nlohmann::ordered_json json_;
};

TEST_F(ExplainTest, HasEveryKeyOfTheInterface) {
  for (const char* key : {"weft", "model", "options", "passes", "nodes", "written_out", "clones", "pieces", "ranges",
                          "memory", "cache", "replay", "guards", "timing_ms"})
    EXPECT_TRUE(json_.contains(key)) << key;
  EXPECT_EQ(json_["options"]["differences"][0]["reason"], "the machine has 2");
  EXPECT_EQ(json_["timing_ms"]["total"], 3.5);
}

TEST_F(ExplainTest, SaysOfMemoryWhatWasMeasuredAndWhatWasNot) {
  explanation_.memory = {.weights = 3 << 20, .activations_planned = 2 << 20, .kv_cache = 1 << 20};
  EXPECT_TRUE(explain_json(explanation_)["memory"]["activations_measured"].is_null());
  EXPECT_NE(explain_text(explanation_).find("activations 2.0 MiB planned (no step was measured)"), std::string::npos);
  EXPECT_TRUE(explain_json(explanation_)["memory"]["kv_cache_measured"].is_null());
  EXPECT_NE(explain_text(explanation_).find("KV pages for the longest sequence 1.0 MiB\n"), std::string::npos);
  explanation_.memory.activations_measured = 3 << 19;
  explanation_.memory.kv_cache_measured = 1 << 19;
  EXPECT_EQ(explain_json(explanation_)["memory"]["activations_measured"], 3 << 19);
  EXPECT_NE(explain_text(explanation_).find("activations 2.0 MiB planned (1.5 MiB measured)"), std::string::npos);
  EXPECT_EQ(explain_json(explanation_)["memory"]["kv_cache_measured"], 1 << 19);
  EXPECT_NE(explain_text(explanation_).find("longest sequence 1.0 MiB (0.5 MiB measured)"), std::string::npos);
}

TEST_F(ExplainTest, SaysWhatIsReplayedAndWhatWasDoneForTheFirstTime) {
  explanation_.replay = {.mode = ReplayMode::full_decode_only,
                         .sizes = {1, 8},
                         .launch_graph_milliseconds = 0.25,
                         .runs = 5,
                         .look_ups = 6,
                         .allocations = 7,
                         .padded_rows = 8};
  explanation_.replay.captures.push_back(
      {.plan = "layer", .mode = ReplayMode::full, .stretches = 1, .captured_steps = 9, .other_steps = 2});
  explanation_.replay.first_time[static_cast<std::size_t>(FirstTime::capture)] = {.before_ready = 3, .after_ready = 4};
  const auto replay = explain_json(explanation_)["replay"];
  EXPECT_EQ(replay["mode"], "FULL_DECODE_ONLY");
  EXPECT_EQ(replay["sizes"].dump(), "[1,8]");
  EXPECT_EQ(replay["captures"][0]["captured_steps"], 9);
  EXPECT_EQ(replay["first_time"]["capture"].dump(), R"({"before_ready":3,"after_ready":4})");
  EXPECT_EQ(replay["runs"], 5);
  EXPECT_EQ(replay["look_ups"], 6);
  EXPECT_EQ(replay["allocations"], 7);
  EXPECT_EQ(replay["padded_rows"], 8);
  const std::string text = explain_text(explanation_);
  EXPECT_NE(text.find("; in 5 runs 6 look-ups and 7 allocations\n"), std::string::npos) << text;
  EXPECT_NE(
      text.find("replay: FULL_DECODE_ONLY up to 8 tokens; layer FULL: 9 of 11 steps in 1 list; captured in 0.25 ms"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("capture 3 and 4"), std::string::npos) << text;
}

TEST_F(ExplainTest, HasATableOfWhatIsCapturedSizeBySize) {
  SizeGraph small{.mode = ReplayMode::full, .numbers = {1}, .text = "s0 = 1", .milliseconds = 0.5, .cost = {9, 64}},
      large = small;
  large.text = "s0 = 16, 16 sequences of 512 pages";
  large.failure = "no memory";
  explanation_.replay.captures.push_back(
      {.plan = "layer", .mode = ReplayMode::full, .stretches = 1, .captured_steps = 9, .sizes = {small, large}});
  const std::string text = explain_text(explanation_);
  for (const char* line :
       {"graphs of layer, FULL:\n", "\n  size                                  launches          ms  device bytes\n",
        "\n  s0 = 1                                       9       0.500            64\n",
        "\n  s0 = 16, 16 sequences of 512 pages  not captured: no memory\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST_F(ExplainTest, SaysWhoRunsGeneratedFunctionsOnADevice) {
  EXPECT_TRUE(json_.at("device_functions").is_null()) << "there is no device";
  explanation_.device_functions = DeviceFunctions{.functions = 3,
                                                  .launched = 2,
                                                  .code = "PTX for sm_90",
                                                  .compiler = "NVRTC 13.0",
                                                  .on_host = {{"rows_1", "it is too wide"}}};
  EXPECT_EQ(explain_json(explanation_)["device_functions"].dump(),
            R"({"functions":3,"launched":2,"code":"PTX for sm_90","compiler":"NVRTC 13.0","reason":null,)"
            R"("on_host":[{"function":"rows_1","reason":"it is too wide"}],"host_problem":null})");
  EXPECT_NE(
      explain_text(explanation_)
          .find("\ngenerated for the device: 2 of 3 functions are launched, PTX for sm_90 of NVRTC 13.0; the host "
                "runs rows_1: it is too wide\n"),
      std::string::npos)
      << explain_text(explanation_);
  explanation_.device_functions->reason = "there is no NVRTC";  // which all that is left did without
  EXPECT_EQ(explain_text(explanation_).find("the others"), std::string::npos);
  explanation_.device_functions->host_problem = "there is no LLVM";
  EXPECT_EQ(explain_json(explanation_)["device_functions"]["host_problem"], "there is no LLVM");
  EXPECT_NE(explain_text(explanation_).find("nothing is compiled for the host: there is no LLVM"), std::string::npos);
  explanation_.device_functions = DeviceFunctions{.functions = 3, .reason = "there is no NVRTC"};
  EXPECT_EQ(explain_json(explanation_)["device_functions"].dump(),
            R"({"functions":3,"launched":0,"code":null,"compiler":null,"reason":"there is no NVRTC","on_host":[],)"
            R"("host_problem":null})");
  EXPECT_NE(
      explain_text(explanation_)
          .find("\ngenerated for the device: 0 of 3 functions are launched; the host runs the others in the order "
                "of the stream: there is no NVRTC\n"),
      std::string::npos)
      << explain_text(explanation_);
}

TEST_F(ExplainTest, SaysWhichBranchesOnSizesWereDropped) {
  EXPECT_EQ(json_["guards"].dump(), "[]") << "without --evaluate-guards";
  explanation_.guards = {{.graph = "forward", .bounds = {{"s0", {1, 64}}}, .branches = 1, .sizes = 4}};
  EXPECT_EQ(explain_json(explanation_)["guards"].dump(),
            R"([{"graph":"forward","ranges":{"s0":[1,64]},"branches":1,"unproved":[],"sizes_traced_again":4}])");
  const std::string text = explain_text(explanation_);
  EXPECT_NE(text.find("\nguards: forward, s0 in [1, 64]: 1 branch on sizes, 0 of them not proved; the same graph for 4 "
                      "sizes\n"),
            std::string::npos)
      << text;
}

TEST_F(ExplainTest, GivesEachNodeItsChoicePerRangeWithTheRefusals) {
  EXPECT_EQ(json_["ranges"].dump(), "[[1,4],[5,64]]");
  int found = 0;
  for (const auto& node : json_["nodes"]) {
    ASSERT_EQ(node["choices"].size(), 2u) << node.dump();
    if (node["op"] != "silu_and_mul") continue;
    ++found;
    EXPECT_EQ(node["choices"][0]["provider"], "few");
    EXPECT_EQ(node["choices"][1]["provider"], "cpu");
    EXPECT_EQ(node["choices"][1]["refused"][0]["provider"], "few");
    EXPECT_EQ(node["choices"][1]["refused"][0]["reason"], "it is for 1 to 4 rows, not for 5 to 64");
  }
  EXPECT_EQ(found, 1);
}

// The counts of the text's kernels, by rows and by op and provider; `section` is the line before them.
std::map<std::string, int> counts_of_text(const std::string& text, const std::string& section) {
  std::map<std::string, int> counts;
  std::string rows, in;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" to ") != std::string::npos && line.ends_with(" rows")) rows = line;
    if (!line.starts_with(' ')) in = line;
    std::istringstream words(line);
    int count = 0;
    std::string x, op, provider;
    if (in == section && words >> count >> x >> op >> provider) counts[rows + ": " + op + "@" + provider] += count;
  }
  return counts;
}

std::map<std::string, int> counts_of_json(const nlohmann::ordered_json& nodes) {
  std::map<std::string, int> counts;
  for (const auto& node : nodes)
    for (const auto& choice : node["choices"])
      ++counts[node["graph"].get<std::string>() + ", " + choice["range"][0].dump() + " to " +
               choice["range"][1].dump() + " rows: " + node["op"].get<std::string>() + "@" +
               choice["provider"].get<std::string>()];
  return counts;
}

// What runs: the nodes of all pieces, by call.
std::map<std::string, int> counts_of_graphs(const std::vector<CompileRecord>& records) {
  std::map<std::string, int> counts;
  for (const CompileRecord& record : records)
    for (const auto& call : record.split->nodes())
      for (const auto& node : record.split->find_piece(call->name)->nodes())
        if (!node->op->is_view)
          ++counts[fmt::format("{}, {} to {} rows: {}@{}", record.graph, record.range.lo, record.range.hi, node->name,
                               node->provider)];
  return counts;
}

TEST_F(ExplainTest, HasEachOpThatRunsOnceAsTextAndAsJson) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> priorities = {
      {"", {}}, {"fused_add_rms_norm", {"reference"}}, {"silu_and_mul", {"native"}}, {"rms_norm", {"native"}}};
  int written_out = 0;
  for (const bool generates : {true, false})
    for (const auto& [op, providers] : priorities) {
      SCOPED_TRACE(op + (generates ? ", generated" : ", by kernels"));
      const auto context = generates ? test_context() : kernel_context();
      if (!op.empty()) context->priorities.set(op, providers);
      const auto traced = small_layer(*context);
      explanation_.records = compile_ranges(*traced, *context, {{1, 1}, {2, 64}}, {}).records;
      const std::string text = explain_text(explanation_);
      const nlohmann::ordered_json json = explain_json(explanation_);
      EXPECT_EQ(counts_of_json(json["nodes"]), counts_of_graphs(explanation_.records));
      EXPECT_EQ(counts_of_json(json["nodes"]), counts_of_text(text, "kernels")) << text;
      EXPECT_EQ(counts_of_json(json["written_out"]), counts_of_text(text, "written out in smaller ops")) << text;
      std::set<std::string> names;
      for (const auto& node : json["nodes"]) {
        EXPECT_NE(node["node"], "");
        EXPECT_TRUE(names.insert(node["node"]).second) << node.dump();
      }
      for (const auto& node : json["written_out"]) EXPECT_NE(node["node"], "") << node.dump();
      written_out += static_cast<int>(json["written_out"].size());
    }
  EXPECT_GT(written_out, 0);
}

TEST_F(ExplainTest, TellsWhatBecameOfEachPattern) {
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 128]) stage=traced where s0 in [1, 8] {\n"
      "  %a = gelu_and_mul(%x)\n  %q, %d = per_token_group_quant_int8(%a, group_size=32)\n"
      "  %b = gelu_tanh_and_mul(%x)\n  %p, %e = per_token_group_quant_int8(%b, group_size=32)\n"
      "  %o, %f = per_token_group_quant_int8(%b, group_size=32, rounding=toward_zero)\n  return %q, %d, %p, %e, %o, "
      "%f\n}\n",
      context_->ops);
  explanation_.records = compile_ranges(*graph, *context_, {{1, 8}}, {}).records;
  std::map<std::string, nlohmann::ordered_json> patterns;
  const nlohmann::ordered_json explained = explain_json(explanation_);
  for (const auto& pass : explained["passes"])
    for (const auto& pattern : pass["patterns"]) patterns[pattern["pattern"]] = pattern;
  EXPECT_EQ(patterns.at("gelu_and_mul_per_token_group_quant_int8")["matched"], 1);
  EXPECT_TRUE(patterns.at("gelu_and_mul_per_token_group_quant_int8")["off"].is_null());
  const auto& missed = patterns.at("gelu_tanh_and_mul_per_token_group_quant_int8");
  EXPECT_EQ(missed["matched"], 0);
  ASSERT_EQ(missed["near_misses"].size(), 2u);
  EXPECT_EQ(missed["near_misses"][0]["node"], "p");
  EXPECT_EQ(missed["near_misses"][0]["reason"], "%b: is also used by %o (per_token_group_quant_int8)");
  const std::string text = explain_text(explanation_);
  EXPECT_NE(text.find("     1 x gelu_and_mul_per_token_group_quant_int8, moves 0.00 MB less of 0.01 at 8 rows\n"),
            std::string::npos)
      << text;
  const auto& profit = patterns.at("gelu_and_mul_per_token_group_quant_int8")["profit"];
  EXPECT_EQ(profit["bytes_before"], 8 * (128 * 4 + 2 * 64 * 4 + 64 + 8));
  EXPECT_EQ(profit["bytes_after"], 8 * (128 * 4 + 64 + 8));
  EXPECT_GT(profit["instructions_before"], 0);
  EXPECT_EQ(profit["instructions_after"], profit["instructions_before"]);
  EXPECT_EQ(profit["by"], "model");
  EXPECT_TRUE(profit["measured"].is_null());
  EXPECT_NE(text.find("     2 x not gelu_tanh_and_mul_per_token_group_quant_int8: %b: is also used by %o"),
            std::string::npos)
      << "told once for both: " << text;
}

TEST_F(ExplainTest, CountsClonesAndPieces) {
  EXPECT_GT(json_["clones"]["inserted"], 0);
  EXPECT_EQ(json_["clones"]["removed"], json_["clones"]["inserted"]);
  EXPECT_EQ(json_["clones"]["kept"].size(), 0u);
  EXPECT_EQ(json_["pieces"]["splitting"], 2);
  EXPECT_EQ(json_["pieces"]["total"], 6);
  for (const auto& piece : json_["pieces"]["list"]) EXPECT_EQ(piece["hash"].get<std::string>().size(), 32u);
  EXPECT_EQ(json_["passes"].size(), 2 * pipeline_passes().size());
}

TEST_F(ExplainTest, SaysTheSameAsText) {
  const std::string text = explain_text(explanation_);
  EXPECT_NE(text.find("option threads is 2 instead of 64: the machine has 2"), std::string::npos) << text;
  EXPECT_NE(text.find("few was refused: it is for 1 to 4 rows"), std::string::npos) << text;
  EXPECT_NE(text.find("time: 3.5 ms (trace 1.0, compile 2.5)"), std::string::npos) << text;
}

TEST_F(ExplainTest, SelectedImplementationsAreThoseOfTheReport) {
  const auto selected = selected_impls(explanation_.records[0]);
  EXPECT_EQ(selected.at("silu_and_mul").begin()->second, "few");
  EXPECT_EQ(selected.at("fused_add_rms_norm").size(), 2u);
  EXPECT_EQ(selected_impls(explanation_.records[1]).at("silu_and_mul").begin()->second, "cpu");
}

}  // namespace weft::explain_test
