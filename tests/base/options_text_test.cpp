#include "base/options_text.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace weft::options_text_test {

// A text that sets the option to something else than its default.
std::string other_value(const OptionRow& row) {
  if (type_text(row) == "flag") return value_text(Options(), row) == "true" ? "false" : "true";
  if (row.limits.check == OptionCheck::between) {
    const std::string least = std::to_string(row.limits.least);
    return value_text(Options(), row) == least ? std::to_string(row.limits.most) : least;
  }
  if (type_text(row) == "word") {
    const std::string words = limits_text(row);
    const std::string first = words.substr(0, words.find(','));
    return value_text(Options(), row) == first ? words.substr(words.rfind(' ') + 1) : first;
  }
  if (row.limits.check == OptionCheck::device_name) return "fake-cuda";
  if (row.limits.check == OptionCheck::custom_op_words) return "none,+add";
  if (row.limits.check == OptionCheck::size_words) return "8";
  if (type_text(row) == "providers per op") return R"({"add": ["native"]})";
  return "other";
}

Options changed(const OptionRow& row) {
  Options options;
  set_option(options, row.name, other_value(row), "test");
  return options;
}

TEST(CodeOptionsText, ChangesWithEveryMarkedOptionAndNoOther) {
  std::set<std::string> keys{code_options_text(Options())};
  std::size_t marked = 0;
  for (const OptionRow& row : option_table()) {
    const Options options = changed(row);
    if (row.limits.check == OptionCheck::between && row.limits.least == row.limits.most) continue;
    EXPECT_NE(value_text(options, row), value_text(Options(), row)) << row.name;
    if (row.effect == OptionEffect::code) {
      ++marked;
      EXPECT_TRUE(keys.insert(code_options_text(options)).second) << row.name;
    } else {
      EXPECT_EQ(code_options_text(options), code_options_text(Options())) << row.name;
    }
  }
  EXPECT_GT(marked, 15u);
}

TEST(CodeOptionsText, DoesNotDependOnWhereAValueCameFrom) {
  Options options;
  set_option(options, "dtype", "auto", "command line");
  EXPECT_EQ(code_options_text(options), "");
}

TEST(CodeOptionsText, SaysWhatIsNotAsByDefault) {
  Options options;
  set_option(options, "dtype", "bf16", "test");
  set_option(options, "cc.splitting_ops", "linear,a b", "test");
  EXPECT_EQ(code_options_text(options), "cc.splitting_ops=\"linear,a b\" dtype=\"bf16\"");
  // Nothing is cut off.
  const std::string many(5000, 'x');
  options.tuned = many;
  EXPECT_NE(code_options_text(options).find(many), std::string::npos);
}

TEST(ValueText, ReadsBackForEveryOption) {
  for (const OptionRow& row : option_table()) {
    const Options options = changed(row);
    Options again;
    set_option(again, row.name, value_text(options, row), "again");
    again.requested = options.requested;
    EXPECT_EQ(again, options) << row.name;
  }
  Options options;
  set_option(options, "cc.splitting_ops", R"(["a,b", " c"])", "test");
  EXPECT_EQ(value_text(options, *find_option("cc.splitting_ops")), R"(["a,b"," c"])");
}

TEST(OptionsText, HasOneLinePerOption) {
  Options options;
  set_option(options, "threads", "2", "WEFT_ARG_THREADS");
  const std::string text = options_text(options);
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), option_table().size());
  EXPECT_NE(text.find("(default auto) (from WEFT_ARG_THREADS)"), std::string::npos) << text;
}

TEST(OptionsText, KeepsValuesOnTheirLine) {
  Options options;
  set_option(options, "logs", "a\nb\x1b", "test");
  const std::string text = options_text(options);
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), option_table().size());
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(OptionsJson, DescribesEveryOption) {
  Options options;
  set_option(options, "threads", "2", "command line");
  const nlohmann::json list = nlohmann::json::parse(options_json(options));
  ASSERT_EQ(list.size(), option_table().size());
  for (const nlohmann::json& entry : list) {
    if (entry["name"] == "threads") {
      EXPECT_EQ(entry["value"], 2);
      EXPECT_EQ(entry["default"], nullptr);
      EXPECT_EQ(entry["source"], "command line");
      EXPECT_EQ(entry["changes_code"], false);
      EXPECT_EQ(entry["allowed"], "1 to 1024");
    }
    if (entry["name"] == "cc.splitting_ops") {
      EXPECT_EQ(entry["value"], nlohmann::json::array({"attention"}));
      EXPECT_EQ(entry["source"], nullptr);
      EXPECT_EQ(entry["changes_code"], true);
    }
  }
}

TEST(RequestedJson, HoldsWhatWasGiven) {
  Options options;
  set_option(options, "max_model_len", "4k", "test");
  EXPECT_EQ(requested_json(options), R"({"max-model-len":"4k"})");
  EXPECT_EQ(nlohmann::json::parse(values_json(options))["max-model-len"], 4000);
}

TEST(OptionsWithoutEffect, SaysWhichAcceptedOptionsDoNothing) {
  Options options;
  set_option(options, "cc.cudagraph_num_of_warmups", "2", "command line");
  set_option(options, "threads", "2", "command line");
  options.mode = "weft";
  EXPECT_EQ(options_without_effect(options),
            (std::vector<std::string>{
                "[cc.cudagraph_num_of_warmups] is accepted but has no effect in this version (command line)"}));
  set_option(options, "cc.splitting_ops", "[]", "command line");
  options.mode = "none";
  EXPECT_EQ(options_without_effect(options).back(),
            "[cc.splitting_ops] has no effect in this run: nothing is compiled (command line)");
  set_option(options, "tuning-budget", "2", "command line");
  const std::string no_size = "[tuning-budget] has no effect in this run: no size is compiled exactly (command line)";
  EXPECT_EQ(options_without_effect(options).back(), no_size);
  options.mode = "weft";
  EXPECT_EQ(options_without_effect(options).back(), no_size);
  options.compile_sizes = {"1"};
  EXPECT_NE(options_without_effect(options).back(), no_size);
}

}  // namespace weft::options_text_test
