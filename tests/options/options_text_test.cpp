#include "options/options_text.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "options/ignored_options.h"

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
  if (row.limits.check == OptionCheck::custom_op_words) return "none,+rms_norm";
  if (row.limits.check == OptionCheck::size_words) return "8";
  if (row.limits.check == OptionCheck::named_paths) return "other=path";
  if (type_text(row) == "providers per op") return R"({"add": ["native"]})";
  return "other";
}

Options changed(const OptionRow& row) {
  Options options;
  set_option(options, row.name, other_value(row), "test");
  return options;
}

using NamedValues = std::vector<std::pair<std::string, std::string>>;

// The names of those whose values differ.
std::vector<std::string> differing(const NamedValues& a, const NamedValues& b) {
  std::vector<std::string> names;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    if (a[i].second != b[i].second) names.push_back(a[i].first);
  }
  return names;
}

TEST(CodeOptions, EachMarkedOptionChangesItsOwnAndNoOtherAny) {
  const NamedValues defaults = code_options(Options());
  std::size_t marked = 0;
  for (const OptionRow& row : option_table()) {
    const Options options = changed(row);
    if (row.limits.check == OptionCheck::between && row.limits.least == row.limits.most) continue;
    EXPECT_NE(value_text(options, row), value_text(Options(), row)) << row.name;
    std::vector<std::string> wanted;
    if (row.effect == OptionEffect::code) wanted.emplace_back(row.name);
    marked += wanted.size();
    EXPECT_EQ(differing(code_options(options), defaults), wanted) << row.name;
  }
  EXPECT_EQ(marked, defaults.size());
  EXPECT_GT(marked, 15u);
}

TEST(CodeOptions, DoNotDependOnWhereAValueCameFrom) {
  Options options;
  set_option(options, "dtype", "auto", "command line");
  EXPECT_EQ(code_options(options), code_options(Options()));
}

TEST(CodeOptions, AreWhole) {
  Options options;
  options.tuned = std::string(5000, 'x');
  const NamedValues all = code_options(options);
  EXPECT_NE(std::find(all.begin(), all.end(), std::pair(std::string("tuned"), options.tuned)), all.end());
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
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')),
            option_table().size() + ignored_options().size());
  EXPECT_NE(text.find("(default auto) (from WEFT_ARG_THREADS)"), std::string::npos) << text;
}

TEST(OptionsText, KeepsValuesOnTheirLine) {
  Options options;
  set_option(options, "logs", "a\nb\x1b", "test");
  const std::string text = options_text(options);
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')),
            option_table().size() + ignored_options().size());
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(OptionsJson, DescribesEveryOption) {
  Options options;
  set_option(options, "threads", "2", "command line");
  const nlohmann::json list = nlohmann::json::parse(options_json(options));
  ASSERT_EQ(list.size(), option_table().size() + ignored_options().size());
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
  EXPECT_EQ(options_without_effect(options).back(),
            "[cc.splitting_ops, tuning-budget] have no effect in this run: nothing is compiled (command line)");
  options.mode = "weft";
  EXPECT_EQ(options_without_effect(options).back(), no_size);
  options.compile_sizes = {"1"};
  EXPECT_NE(options_without_effect(options).back(), no_size);
}

TEST(OptionsWithoutEffect, SaysWhatIsMissingForThem) {
  const auto told = [](const char* option, const char* value, const std::function<void(Options&)>& run) {
    Options options;
    options.mode = "weft";
    run(options);
    set_option(options, option, value, "test");
    const std::vector<std::string> notes = options_without_effect(options);
    return notes.empty() ? "" : notes.front();
  };
  const auto note = [](const std::string& option, const std::string& reason) {
    return "[" + option + "] has no effect in this run: " + reason + " (test)";
  };
  const auto eager = [](Options& options) { options.mode = "none"; };
  for (const auto& [option, value] : {std::pair("eager-piece", "99"),
                                      {"cc.compile_sizes", "8"},
                                      {"skip-pass", "raise"},
                                      {"limit-rewrites", "act_quant=3"},
                                      {"print-ir-after", "all"},
                                      {"compile-to", "split"},
                                      {"capture", "lazy"},
                                      {"check-replay", "1"},
                                      {"tuning-budget", "5"}})
    EXPECT_EQ(told(option, value, eager), note(option, "nothing is compiled"));
  EXPECT_EQ(told("eager-piece", "2", [](Options& options) { options.backend = "eager"; }),
            note("eager-piece", "no code is generated"));
  EXPECT_EQ(told("capture", "lazy", [](Options& options) { options.cudagraph_mode = "NONE"; }),
            note("capture", "nothing is captured"));
  EXPECT_EQ(told("eager-piece", "2", [](Options&) {}), "");
  for (const char* option : {"threads", "forbid-lazy", "tuned"}) EXPECT_EQ(told(option, "1", eager), "") << option;
}

}  // namespace weft::options_text_test
