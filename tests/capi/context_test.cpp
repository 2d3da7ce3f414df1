#include <functional>

#include <gtest/gtest.h>

#include "options/effective_options.h"
#include "options/options_text.h"
#include "tests/capi/handles.h"

namespace weft::context_test {

std::string create_breach(const OptionPairs& given, const std::vector<std::string>& parts) {
  std::vector<weft_option> options;
  for (const auto& [key, value] : given) options.push_back({key.c_str(), value.c_str()});
  weft_context* context = reinterpret_cast<weft_context*>(&options);
  const std::string breach = breach_of_user_error(
      [&](weft_error* error) { return weft_context_create(options.data(), options.size(), &context, error); }, parts);
  EXPECT_EQ(context, nullptr) << "a failed call leaves null";
  return breach;
}

std::string list_of(weft_context* context, const char* op) { return text_of(weft_priority_list, context, op); }

using Names = std::vector<const char*>;

int set(weft_context* context, const char* op, const Names& providers, weft_error* error = nullptr) {
  return weft_priority_set(context, op, providers.data(), providers.size(), error);
}

int push(weft_context* context, const char* op, const Names& providers, weft_priority_scope* scope,
         weft_error* error = nullptr) {
  return weft_priority_push(context, op, providers.data(), providers.size(), scope, error);
}

TEST(CContext, TakesEveryOptionOfTheTable) {
  Options requested;
  OptionPairs all;
  for (const OptionRow& row : option_table()) {
    all.emplace_back(row.name, value_text(requested, row));
    if (row.name == "threads") all.back().second = "2";
  }
  for (const auto& [key, value] : all) set_option(requested, key, value, "test");
  const OwnedContext context(all);
  EXPECT_EQ(text_of(weft_context_options, static_cast<weft_context*>(context)),
            values_json(effective_options(requested).options));
}

TEST(CContext, ReadsKeysAndValuesAsTheCommandLineDoes) {
  const OwnedContext context(OptionPairs{{"block_size", "4"},
                                         {"--max-num-batched-tokens", "1K"},
                                         {"cc", R"({"splitting_ops": ["attention", "rms_norm"]})"},
                                         {"enforce-eager", ""},
                                         {"ir-op-priority.rms_norm", "reference,cpu"},
                                         {"block-size", "8"}});
  const nlohmann::json options = json_of(weft_context_options, static_cast<weft_context*>(context));
  EXPECT_EQ(options["block-size"], 8) << "the last one wins";
  EXPECT_EQ(options["max-num-batched-tokens"], 1024);
  EXPECT_EQ(options["cc.splitting_ops"], nlohmann::json({"attention", "rms_norm"}));
  EXPECT_EQ(options["enforce-eager"], true);
  EXPECT_EQ(options["ir-op-priority"], (nlohmann::json{{"rms_norm", {"reference", "cpu"}}}));
}

TEST(CContext, RefusesUnknownNamesWithTheNearestKnownOne) {
  EXPECT_EQ(create_breach({{"thread", "2"}}, {"\"thread\"", "did you mean \"threads\"?", "weft_context_create"}), "");
  EXPECT_EQ(create_breach({{"dtype", "f33"}}, {"[dtype]", "f33"}), "");
  EXPECT_EQ(create_breach({{"ir-op-priority.rms_norms", "cpu"}}, {"[rms_norms]", "did you mean \"rms_norm\"?"}), "");
  EXPECT_EQ(create_breach({{"ir-op-priority.rms_norm", "cpv"}}, {"cpv", "did you mean \"cpu\"?"}), "");
  EXPECT_EQ(create_breach({{"skip-pass", "splitt"}}, {"splitt", "did you mean \"split\"?"}), "");
  EXPECT_EQ(create_breach({{"plugin", "/nonexistent/libmine.so"}}, {"/nonexistent/libmine.so"}), "");
  EXPECT_EQ(create_breach({{"threads", "\xff"}}, {"value must be UTF-8", "byte 0"}), "");
}

TEST(CContext, SaysWhatItMadeOfTheOptions) {
  const OwnedContext context(OptionPairs{{"cc.custom_ops", "-rms_norm"},
                                         {"cc.cudagraph_num_of_warmups", "3"},
                                         {"max-num-seqs", "1000"},
                                         {"max-num-batched-tokens", "100"}});
  const std::string notes = text_of(weft_context_notes, static_cast<weft_context*>(context));
  EXPECT_NE(notes.find("is spelled --ir-op-priority='{\"rms_norm\":\"fused,native\","), std::string::npos) << notes;
  EXPECT_NE(notes.find("max-num-seqs is 100 instead of 1000"), std::string::npos) << notes;
  EXPECT_NE(notes.find("[cc.cudagraph_num_of_warmups] is accepted but has no effect"), std::string::npos) << notes;
  EXPECT_EQ(list_of(context, "rms_norm"), "native,cpu");
  EXPECT_EQ(text_of(weft_context_notes, static_cast<weft_context*>(OwnedContext())), "");
}

TEST(CContext, RefusesNull) {
  weft_context* made = nullptr;
  const weft_option no_value{"threads", nullptr}, no_key{nullptr, "2"};
  const OwnedContext context;
  char* text = nullptr;
  const std::vector<std::pair<std::string, std::function<int(weft_error*)>>> calls = {
      {"context", [&](weft_error* error) { return weft_context_create(nullptr, 0, nullptr, error); }},
      {"options", [&](weft_error* error) { return weft_context_create(nullptr, 1, &made, error); }},
      {"value", [&](weft_error* error) { return weft_context_create(&no_value, 1, &made, error); }},
      {"key", [&](weft_error* error) { return weft_context_create(&no_key, 1, &made, error); }},
      {"context", [&](weft_error* error) { return weft_context_notes(nullptr, &text, error); }},
      {"text", [&](weft_error* error) { return weft_context_notes(context, nullptr, error); }},
      {"context", [&](weft_error* error) { return weft_context_options(nullptr, &text, error); }},
      {"json", [&](weft_error* error) { return weft_context_options(context, nullptr, error); }},
      {"context", [&](weft_error* error) { return weft_priority_set(nullptr, "rms_norm", nullptr, 0, error); }},
      {"op", [&](weft_error* error) { return weft_priority_set(context, nullptr, nullptr, 0, error); }},
      {"providers", [&](weft_error* error) { return weft_priority_set(context, "rms_norm", nullptr, 1, error); }},
      {"providers[1]",
       [&](weft_error* error) {
         return set(context, "rms_norm", {"cpu", nullptr}, error);
       }},
      {"scope", [&](weft_error* error) { return push(context, "rms_norm", {"cpu"}, nullptr, error); }},
      {"context", [&](weft_error* error) { return weft_priority_pop(nullptr, 1, error); }},
      {"op", [&](weft_error* error) { return weft_priority_list(context, nullptr, &text, error); }},
      {"text", [&](weft_error* error) { return weft_priority_list(context, "rms_norm", nullptr, error); }},
  };
  for (const auto& [argument, call] : calls)
    EXPECT_EQ(breach_of_user_error(call, {"[weft_", "] " + argument + " must be given, but is null"}), "");
  EXPECT_EQ(weft_context_create(nullptr, 1, &made, nullptr), WEFT_USER_ERROR) << "nobody wants to know why";
  EXPECT_EQ(made, nullptr);
  weft_context_destroy(nullptr);
  weft_text_free(nullptr);
}

TEST(CPriority, IsSetForTheLifeOfTheContext) {
  const OwnedContext context;
  EXPECT_EQ(list_of(context, "rms_norm"), "cpu,native");
  EXPECT_EQ(set(context, "rms_norm", {"reference", "cpu"}), WEFT_SUCCESS);
  EXPECT_EQ(list_of(context, "rms_norm"), "reference,cpu,native");
  EXPECT_EQ(list_of(context, "silu_and_mul"), "cpu,native");
  EXPECT_EQ(set(context, "rms_norm", {}), WEFT_SUCCESS);
  EXPECT_EQ(list_of(context, "rms_norm"), "cpu,native");
}

TEST(CPriority, OfAScopeIsRestoredAfterIt) {
  const OwnedContext context(OptionPairs{{"ir-op-priority.rms_norm", "native"}});
  weft_priority_scope outer = 0, inner = 0;
  ASSERT_EQ(push(context, "rms_norm", {"reference"}, &outer), WEFT_SUCCESS);
  ASSERT_EQ(push(context, "rms_norm", {}, &inner), WEFT_SUCCESS);
  EXPECT_NE(outer, 0U);
  EXPECT_NE(outer, inner);
  EXPECT_EQ(list_of(context, "rms_norm"), "cpu,native");
  EXPECT_EQ(set(context, "rms_norm", {"cpu"}), WEFT_SUCCESS);
  EXPECT_EQ(weft_priority_pop(context, inner, nullptr), WEFT_SUCCESS);
  EXPECT_EQ(list_of(context, "rms_norm"), "reference,cpu,native") << "whatever was set in between";
  EXPECT_EQ(weft_priority_pop(context, outer, nullptr), WEFT_SUCCESS);
  EXPECT_EQ(list_of(context, "rms_norm"), "native,cpu");
}

TEST(CPriority, ScopesEndInReverseOrderAndOnce) {
  const OwnedContext context;
  const auto pop_breach = [&](weft_priority_scope scope, const std::string& part) {
    return breach_of_user_error([&](weft_error* error) { return weft_priority_pop(context, scope, error); },
                                {"[weft_priority_pop]", part});
  };
  EXPECT_EQ(pop_breach(1, "none is open"), "");
  weft_priority_scope first = 0, second = 0;
  ASSERT_EQ(push(context, "rms_norm", {"reference"}, &first), WEFT_SUCCESS);
  ASSERT_EQ(push(context, "silu_and_mul", {"native"}, &second), WEFT_SUCCESS);
  EXPECT_EQ(pop_breach(first, "must not end before scope " + std::to_string(second)), "");
  EXPECT_EQ(list_of(context, "rms_norm"), "reference,cpu,native") << "nothing was popped";
  EXPECT_EQ(weft_priority_pop(context, second, nullptr), WEFT_SUCCESS);
  EXPECT_EQ(pop_breach(second, "there is no scope"), "");
  EXPECT_EQ(weft_priority_pop(context, first, nullptr), WEFT_SUCCESS);
}

TEST(CPriority, RefusesWhatItDoesNotKnowAndStaysAsItWas) {
  const OwnedContext context(OptionPairs{{"ir-op-priority.rms_norm", "reference"}});
  weft_priority_scope scope = 7;
  const auto set_breach = [&](const char* op, const Names& providers, const std::string& part) {
    return breach_of_user_error([&](weft_error* error) { return set(context, op, providers, error); }, {part});
  };
  const auto push_breach = [&](const char* op, const Names& providers, const std::string& part) {
    return breach_of_user_error([&](weft_error* error) { return push(context, op, providers, &scope, error); }, {part});
  };
  EXPECT_EQ(set_breach("rms_nrom", {"cpu"}, "did you mean \"rms_norm\"?"), "");
  EXPECT_EQ(set_breach("rms_norm", {"cpu", "refrence"}, "did you mean \"reference\"?"), "");
  EXPECT_EQ(set_breach("rms_norm", {"cpu", "cpu"}, "names cpu twice"), "");
  EXPECT_EQ(set_breach("rms_nrom", {}, "did you mean \"rms_norm\"?"), "");
  EXPECT_EQ(push_breach("rms_norm", {"cp"}, "did you mean \"cpu\"?"), "");
  EXPECT_EQ(scope, 0U);
  EXPECT_EQ(list_of(context, "rms_norm"), "reference,cpu,native");
  EXPECT_EQ(breach_of_user_error([&](weft_error* error) { return weft_priority_pop(context, 1, error); }, {}), "");
}

}  // namespace weft::context_test
