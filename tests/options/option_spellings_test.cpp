// Options that users of vLLM paste: every spelling of the modes, and the group of dynamic shapes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "options/options.h"
#include "options/options_text.h"
#include "tests/thrown_message.h"

namespace weft::option_spellings_test {

Options with(std::string_view name, std::string_view text) {
  Options options;
  set_option(options, name, text, "test");
  return options;
}

std::string set_error(std::string_view name, std::string_view text) {
  return message_of([&] { with(name, text); });
}

TEST(OptionSpellings, ModesAreReadInEverySpelling) {
  const std::map<std::string, std::vector<std::string>> spellings{
      {"none", {"0", "NONE", "none", "None"}},
      {"stock", {"1", "STOCK_TORCH_COMPILE", "stock_torch_compile", "stock", "STOCK"}},
      {"trace_once", {"2", "DYNAMO_TRACE_ONCE", "dynamo_trace_once", "trace_once", "TRACE_ONCE"}},
      {"weft", {"3", "VLLM_COMPILE", "vllm_compile", "Vllm_Compile", "weft"}}};
  for (const auto& [mode, all] : spellings) {
    for (const std::string& spelling : all) {
      for (const char* name : {"-cc.mode", "--compilation-config.mode"})
        EXPECT_EQ(with(name, spelling).mode, mode) << name << " " << spelling;
      EXPECT_EQ(with("-cc", R"({"mode": ")" + spelling + "\"}").mode, mode) << spelling;
    }
    EXPECT_EQ(with("--compilation-config", R"({"mode": )" + all[0] + "}").mode, mode) << "a number of JSON";
  }
  for (const char* wrong : {"4", "-1", "03", "VLLM", "torch_compile", "", "true"})
    EXPECT_NE(set_error("cc.mode", wrong).find("[cc.mode] wanted one of auto, none, stock, trace_once, weft, but is"),
              std::string::npos)
        << wrong;
}

// vLLM's JSON has the values of the enum, which are numbers and pairs.
TEST(OptionSpellings, GraphModesAreReadAsNamesAndAsValues) {
  const std::map<std::string, std::vector<std::string>> spellings{
      {"NONE", {"0", "\"NONE\""}},
      {"PIECEWISE", {"1", "\"piecewise\""}},
      {"FULL", {"2", "\"FULL\""}},
      {"FULL_DECODE_ONLY", {"[2, 0]", "\"FULL_DECODE_ONLY\""}},
      {"FULL_AND_PIECEWISE", {"[2, 1]", "[2,1]"}}};
  for (const auto& [mode, all] : spellings)
    for (const std::string& spelling : all)
      EXPECT_EQ(with("-cc", R"({"cudagraph_mode": )" + spelling + "}").cudagraph_mode, mode) << spelling;
  EXPECT_NE(set_error("-cc", R"({"cudagraph_mode": [2, 2]})").find("[cc.cudagraph_mode] wanted"), std::string::npos);
}

TEST(OptionSpellings, WordsAndFoldersThatVllmLeavesOpenAreNotSet) {
  Options options;
  apply_environment(options, [](const std::string& name) -> std::optional<std::string> {
    if (name == "WEFT_CACHE_ROOT" || name == "WEFT_DEBUG_DUMP_PATH") return "/mine";
    return std::nullopt;
  });
  set_option(options, "-cc", R"({"backend": "", "mode": null, "cache_dir": "", "debug_dump_path": null})", "test");
  EXPECT_EQ(options.backend, "inductor");
  EXPECT_EQ(options.mode, "auto");
  EXPECT_EQ(options.cache_root, "/mine");
  EXPECT_EQ(options.debug_dump_path, "/mine");
  set_option(options, "-cc", R"({"cache_dir": "/other"})", "test");
  EXPECT_EQ(options.cache_root, "/other");
}

TEST(OptionSpellings, DynamicShapesAreAGroupOfJson) {
  const char* json = R"({"type": "UNBACKED", "evaluate_guards": true, "assume_32_bit_indexing": true})";
  const auto check = [](const Options& options, const std::string& source) {
    EXPECT_EQ(options.dynamic_shapes_type, "unbacked") << source;
    EXPECT_TRUE(options.evaluate_guards) << source;
    EXPECT_EQ(
        options_without_effect(options),
        std::vector<std::string>{"[cc.dynamic_shapes_config.assume_32_bit_indexing] is accepted but has no effect "
                                 "in this version (" +
                                 source + ")"});
  };
  check(with("--compilation-config", fmt::format(R"({{"dynamic_shapes_config": {}}})", json)), "test");
  check(with("-cc.dynamic_shapes_config", json), "test");
  Options from_environment;
  apply_environment(from_environment, [&](const std::string& name) {
    return name == "WEFT_ARG_CC_DYNAMIC_SHAPES_CONFIG" ? std::optional<std::string>(json) : std::nullopt;
  });
  check(from_environment, "WEFT_ARG_CC_DYNAMIC_SHAPES_CONFIG");
  const auto type_of = [](const char* type) { return with("cc.dynamic_shapes_config.type", type).dynamic_shapes_type; };
  EXPECT_EQ(type_of("BACKED"), "backed");
  EXPECT_EQ(type_of("BACKED_SIZE_OBLIVIOUS"), "backed");
  EXPECT_EQ(type_of("unbacked"), "unbacked");
  EXPECT_NE(set_error("-cc.dynamic_shapes_config", R"({"typ": "BACKED"})")
                .find("did you mean \"cc.dynamic_shapes_config.type\"?"),
            std::string::npos);
  EXPECT_NE(set_error("-cc.dynamic_shapes_config", R"({"type": "FREE"})").find("wanted one of backed, unbacked"),
            std::string::npos);
}

}  // namespace weft::option_spellings_test
