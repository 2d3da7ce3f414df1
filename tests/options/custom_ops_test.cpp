#include "options/custom_ops.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/thrown_message.h"

namespace weft::custom_ops_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct Translated {
  Options options;
  std::vector<std::string> notes;
};

Translated translate(const std::string& words, const Settings& settings = {}) {
  Translated result;
  set_option(result.options, "cc.custom_ops", words, "test");
  for (const auto& [name, value] : settings) set_option(result.options, name, value, "test");
  result.notes = translate_custom_ops(result.options);
  EXPECT_TRUE(result.options.custom_ops.empty());
  return result;
}

// The ops that the words switch off.
Words off(const std::string& words, const Settings& settings = {}) {
  Words ops;
  for (const auto& [op, providers] : translate(words, settings).options.ir_op_priority) {
    EXPECT_EQ(providers, (Words{"fused", "native"})) << op;
    ops.push_back(op);
  }
  return ops;
}

Words sorted(Words words) {
  std::sort(words.begin(), words.end());
  return words;
}

Words without(Words words, const Words& left_out) {
  std::erase_if(words,
                [&](const auto& word) { return std::find(left_out.begin(), left_out.end(), word) != left_out.end(); });
  return words;
}

TEST(CustomOps, SwitchLayersAndNothingElse) {
  const Words all = sorted(layer_ops());
  EXPECT_GT(all.size(), 20u);
  for (const char* op : {"linear", "linear_int8", "attention", "kv_cache_update", "embedding"})
    EXPECT_EQ(std::count(all.begin(), all.end(), op), 0) << op;
  EXPECT_EQ(off("none"), all);
  EXPECT_EQ(off("all"), Words{});
  EXPECT_EQ(off(""), Words{});
  EXPECT_EQ(off("all,-silu_and_mul"), Words{"silu_and_mul"});
  EXPECT_EQ(off("all,-rms_norm"), (Words{"fused_add_rms_norm", "rms_norm"}));
  EXPECT_EQ(off("none,+rms_norm"), without(all, {"fused_add_rms_norm", "rms_norm"}));
  EXPECT_EQ(off("all,-quant_fp8").size(), 4u);
}

TEST(CustomOps, OfLayersThatAreTheSameOpTheNamedOneDecides) {
  EXPECT_EQ(off("all,-gemma_rms_norm"), off("all,-rms_norm"));
  EXPECT_EQ(off("none,+gemma_rms_norm"), off("none,+rms_norm"));
  EXPECT_EQ(off("all,-gemma_rms_norm,+rms_norm"), Words{});
}

// vLLM adds none where Inductor compiles, and all elsewhere.
TEST(CustomOps, WithoutABaseModeTheModeOfCompilationDecides) {
  EXPECT_EQ(off("+rms_norm"), off("none,+rms_norm"));
  EXPECT_EQ(off("-rms_norm"), off("none"));
  for (const Settings& eager : {Settings{{"enforce-eager", ""}}, {{"cc.mode", "0"}}, {{"cc.backend", "eager"}}}) {
    EXPECT_EQ(off("+rms_norm", eager), Words{});
    EXPECT_EQ(off("-silu_and_mul", eager), Words{"silu_and_mul"});
  }
}

TEST(CustomOps, LeaveRequestedPriorities) {
  const Translated result = translate("none", {{"ir-op-priority.rms_norm", "cpu"}});
  EXPECT_EQ(result.options.ir_op_priority.at("rms_norm"), Words{"cpu"});
  EXPECT_EQ(result.options.ir_op_priority.size(), layer_ops().size());
}

TEST(CustomOps, ArePrintedInASpellingThatMeansTheSame) {
  const Translated result = translate("none,+quant_fp8");
  ASSERT_EQ(result.notes.size(), 1u);
  const std::string& note = result.notes[0];
  const std::size_t begin = note.find("--ir-op-priority='");
  ASSERT_NE(begin, std::string::npos) << note;
  std::string json = note.substr(note.find('{', begin));
  json.pop_back();
  Options again;
  set_option(again, "ir-op-priority", json, "test");
  EXPECT_EQ(again.ir_op_priority, result.options.ir_op_priority);
  EXPECT_NE(translate("all").notes.at(0).find("changes nothing"), std::string::npos);
  const std::vector<std::string> missing = translate("none,+layer_norm,-grouped_topk").notes;
  EXPECT_NE(missing.at(1).find("layer_norm, grouped_topk"), std::string::npos) << missing[1];
}

TEST(CustomOps, AreListsThatGrow) {
  Options options;
  set_option(options, "-cc.custom_ops", "[none]", "test");
  set_option(options, "-cc.custom_ops+", "+rms_norm", "test");
  EXPECT_EQ(options.custom_ops, (Words{"none", "+rms_norm"}));
  Options fresh;
  set_option(fresh, "-cc.splitting_ops+", R"(["linear"])", "test");
  EXPECT_EQ(fresh.splitting_ops, Words{"linear"}) << "the default is not among what was requested";
  set_option(fresh, "-cc.cudagraph_capture_sizes", "1,2", "test");
  set_option(fresh, "-cc.cudagraph_capture_sizes+", "4", "test");
  EXPECT_EQ(fresh.cudagraph_capture_sizes, (Counts{1, 2, 4}));
  EXPECT_NE(message_of([&] { set_option(fresh, "-cc.mode+", "3", "test"); }).find("[cc.mode] wanted a list"),
            std::string::npos);
}

TEST(CustomOps, AreValidatedAsInVllm) {
  const auto error = [](const std::string& words) {
    return message_of([&] {
      Options options;
      set_option(options, "cc.custom_ops", words, "test");
    });
  };
  for (const char* wrong : {"all,none", "none,none", "+", "-", "rms_norm", "+rms_norm,-rms_norm", "+none", "+linear"})
    EXPECT_EQ(error(wrong).find("[cc.custom_ops] "), 0u) << wrong;
  const std::string both = error("+rms_nrom,none,-silu_and_mull");
  EXPECT_NE(both.find("\"+rms_nrom\", did you mean \"+rms_norm\"?"), std::string::npos) << both;
  EXPECT_NE(both.find("\"-silu_and_mull\", did you mean \"-silu_and_mul\"?"), std::string::npos) << both;
  EXPECT_NE(error("nnoe").find("did you mean \"none\"?"), std::string::npos);
}

}  // namespace weft::custom_ops_test
