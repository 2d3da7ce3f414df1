#include "io/chat_template.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace weft::chat_template_test {

using Json = nlohmann::ordered_json;

Json read_parity(const std::string& name) {
  std::ifstream file(std::string(WEFT_TEST_DATA) + "/parity/" + name);
  EXPECT_TRUE(file.good()) << name;
  return Json::parse(file);
}

std::string render(const std::string& source, const Json& variables = Json::object()) {
  return ChatTemplate(source).render(variables);
}

// The message of the UserError that the template ends with.
std::string error_of(const std::string& source, const Json& variables = Json::object()) {
  try {
    return "no error but: " + render(source, variables);
  } catch (const UserError& error) {
    return error.what();
  }
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// As in the GGUF file of SmolLM2-135M-Instruct under tokenizer.chat_template.
constexpr const char* kSmolLm2 =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

TEST(ChatTemplate, GivesTheTextOfTransformersOrRefusesAsItDoes) {
  const Json parity = read_parity("template_cases.json");
  ASSERT_GE(parity["cases"].size(), 50u);
  for (const Json& one : parity["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const auto source = one["template"].get<std::string>();
    if (one.contains("error")) {
      EXPECT_THROW(render(source, parity["context"]), UserError);
    } else {
      EXPECT_EQ(render(source, parity["context"]), one["text"].get<std::string>());
    }
  }
}

TEST(ChatTemplate, WritesConversationsAsTheModelWasTrainedOn) {
  const Json parity = read_parity("chat.json");
  const ChatTemplate chat(kSmolLm2);
  ASSERT_GE(parity["cases"].size(), 10u);
  for (const Json& one : parity["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const Json variables = {{"messages", one["messages"]}, {"add_generation_prompt", one["add_generation_prompt"]}};
    EXPECT_EQ(chat.render(variables), one["text"].get<std::string>());
  }
}

TEST(ChatTemplate, NamesWhatItDoesNotKnowAndTheLine) {
  EXPECT_EQ(error_of("a\n\n{{ 1 | frobnicate }}"), "[chat template] line 3: unknown filter 'frobnicate'");
  EXPECT_EQ(error_of("{{ 1 is frobnicate }}"), "[chat template] line 1: unknown test 'frobnicate'");
  EXPECT_EQ(error_of("\n{% include 'x' %}"), "[chat template] line 2: unknown tag 'include'");
  EXPECT_EQ(error_of("\n{{ frobnicate() }}"), "[chat template] line 2: 'frobnicate' is undefined");
  EXPECT_EQ(error_of("{{ 'a'.frobnicate() }}"), "[chat template] line 1: 'str object' has no attribute 'frobnicate'");
  EXPECT_EQ(error_of("{% if x %}\n\n"), "[chat template] line 2: the template ends inside 'if'");
}

TEST(ChatTemplate, NamesTheLineWhereItFails) {
  EXPECT_EQ(error_of("{% for x in [1] %}\n{{ x.y.z }}{% endfor %}"),
            "[chat template] line 2: 'int object' has no attribute 'y'");
  EXPECT_EQ(error_of("{{ 'a' +\n (1 +\n 'b') }}"),
            "[chat template] line 2: unsupported operand type(s) for +: 'int' and 'str'");
}

TEST(ChatTemplate, ShowsTheMessageOfRaiseException) {
  EXPECT_EQ(error_of("{{ raise_exception('no ' ~ 'tools, please') }}"), "[chat template] no tools, please");
}

TEST(ChatTemplate, RefusesWhatIsNoObjectOfVariables) {
  EXPECT_THROW(render("a", Json::array()), UserError);
  EXPECT_EQ(error_of("a", {{"n", 18446744073709551615u}}),
            "[chat template] the template variables hold the integer 18446744073709551615, which is beyond 64 bits "
            "with a sign");
}

TEST(ChatTemplate, RefusesIntegersBeyond64Bits) {
  for (const char* source : {"{{ 9223372036854775807 + 1 }}", "{{ 10 ** 19 }}", "{{ 9223372036854775808 }}",
                             "{{ -(-9223372036854775807 - 1) }}", "{{ (-9223372036854775807 - 1) // -1 }}",
                             "{{ '9223372036854775808' | int }}", "{{ 1e19 | int }}"}) {
    EXPECT_NE(error_of(source).find("64 bits"), std::string::npos) << source << ": " << error_of(source);
  }
}

TEST(ChatTemplate, KeepsBytesThatAreNotUtf8) {
  EXPECT_EQ(render("{{ x }}|{{ x | length }}|{{ x[1] }}|{{ x | upper }}", {{"x", "a\xFFz"}}), "a\xFFz|3|\xFF|A\xFFZ");
  EXPECT_EQ(render("\xC3{{ 'a\xC3' }}"),
            "\xC3"
            "a\xC3");
}

TEST(ChatTemplate, MayBeRenderedManyTimes) {
  const ChatTemplate chat(
      "{% set ns = namespace(n=0) %}{% for x in xs %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}");
  EXPECT_EQ(chat.render({{"xs", {1, 2}}}), "3");
  EXPECT_EQ(chat.render({{"xs", {5}}}), "5");
}

TEST(ChatTemplate, RefusesToNestTooDeep) {
  for (const std::string& source : {
           "{{ " + repeat("(", 5000) + "1" + repeat(")", 5000) + " }}",
           "{{ " + repeat("[", 5000) + repeat("]", 5000) + " }}",
           "{{ " + repeat("not ", 5000) + "1 }}",
           "{{ " + repeat("-", 5000) + "1 }}",
           "{{ 1" + repeat(" + 1", 5000) + " }}",
           "{{ x" + repeat(".x", 5000) + " }}",
           "{{ x" + repeat(" | list", 5000) + " }}",
           "{{ " + repeat("1 if 1 else ", 5000) + "1 }}",
           repeat("{% if 1 %}", 5000) + repeat("{% endif %}", 5000),
           "{% set " + repeat("(", 5000) + "x",
       }) {
    EXPECT_NE(error_of(source).find("nested"), std::string::npos) << error_of(source);
  }
  EXPECT_EQ(render("{{ " + repeat("(", 90) + "1" + repeat(")", 90) + " }}"), "1");
}

TEST(ChatTemplate, RefusesEndlessRecursion) {
  for (const char* source : {
           "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
           "{% macro f(n) %}{% if n %}{% for x in [1] %}{{ f([n] | map('int') | first) | upper }}{% endfor %}"
           "{% endif %}{% endmacro %}{{ f(1) }}",
           "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}",
           "{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}",
       }) {
    EXPECT_NE(error_of(source).find("too deep"), std::string::npos) << error_of(source);
  }
  std::string nested_map = "{{ 'a' | map('map'";
  for (int i = 0; i < 5000; ++i) nested_map += ", 'map'";
  EXPECT_NE(error_of(nested_map + ", 'list') | list }}").find("too deep"), std::string::npos);
}

TEST(ChatTemplate, RefusesValuesThatGrowWithoutEnd) {
  for (const char* source : {
           "{% set ns = namespace(x='a') %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}",
           "{% set ns = namespace() %}{% set ns.x = [ns, ns] %}{{ ns }}",
           "{{ 'a' * 9223372036854775807 }}",
           "{{ [1] * 9223372036854775807 }}",
           "{{ 'a' | center(9223372036854775807) }}",
           "{{ '%9999999999d' % 1 }}",
       }) {
    EXPECT_EQ(error_of(source).find("no error"), std::string::npos) << source;
  }
}

TEST(ChatTemplate, HoldsToTheLimitsGiven) {
  const ChatTemplate squaring("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}");
  EXPECT_THROW(squaring.render(Json::object(), {.steps = 1'000'000}), UserError);
  const ChatTemplate counting("{% for i in range(1000) %}{{ i }}{% endfor %}");
  EXPECT_THROW(counting.render(Json::object(), {.steps = 500}), UserError);
  EXPECT_THROW(counting.render(Json::object(), {.allocated_bytes = 1000}), UserError);
  EXPECT_THROW(counting.render(Json::object(), {.text_bytes = 100}), UserError);
  EXPECT_NO_THROW(counting.render(Json::object(), {.steps = 10'000}));
  EXPECT_THROW(ChatTemplate(std::string((1 << 20) + 1, 'a')), UserError);
}

TEST(ChatTemplate, HasRoomForALongConversation) {
  Json messages = Json::array();
  for (int i = 0; i < 2000; ++i)
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(1000, 'x')}});
  EXPECT_GT(render(kSmolLm2, {{"messages", messages}, {"add_generation_prompt", true}}).size(), 2'000'000u);
}

// As in Jinja. Templates have filters of other programs where text conversations do not go.
TEST(ChatTemplate, UnknownNamesInBranchesFailWhereTheyAreEvaluated) {
  for (const char* source :
       {"{% if false %}{{ 1 | frobnicate }}{% endif %}ok", "{% if true %}ok{% elif 1 is frobnicate %}{% endif %}",
        "{% if true %}ok{% else %}{% set x = 1 | frobnicate(2) %}{% endif %}", "{{ 1 | frobnicate if false }}ok",
        "{{ 'ok' if true else [1 is frobnicate] }}", "{{ ('ok' if true else 1 | frobnicate) }}"})
    EXPECT_EQ(render(source, Json::object()), "ok") << source;
  EXPECT_EQ(error_of("{% if true %}\n{{ 1 | frobnicate }}{% endif %}"),
            "[chat template] line 2: unknown filter 'frobnicate'");
  EXPECT_EQ(error_of("{{ 'a' if 1 is frobnicate }}"), "[chat template] line 1: unknown test 'frobnicate'");
  for (const char* source :
       {"{% for x in [] %}{{ x | frobnicate }}{% endfor %}", "{% macro m() %}{{ 1 | frobnicate }}{% endmacro %}",
        "{% if false %}{% for x in [] %}{{ x is frobnicate }}{% endfor %}{% endif %}",
        "{% set x | frobnicate %}{% endset %}", "{{ [1 | frobnicate] }}", "{{ 'a' if false }}{{ 1 | frobnicate }}"})
    EXPECT_NE(error_of(source).find("'frobnicate'"), std::string::npos) << source;
}

TEST(ChatTemplate, ThoseThatFailWithoutAContentHaveNone) {
  const Json variables{{"messages", {{{"role", "assistant"}, {"content", nullptr}}}}};
  EXPECT_EQ(render("{% for m in messages %}{{ m.content | tojson }}{% endfor %}", variables), "null");
}

TEST(ChatTemplate, OnlyThoseThatAskHaveAContentThatIsNone) {
  const Json variables{{"messages", {{{"role", "assistant"}, {"content", nullptr}}}}};
  const std::string call = "{% for m in messages %}{% if m['content'] is none %}call{% endif %}{% endfor %}";
  EXPECT_EQ(render(call, variables), "call");
  EXPECT_EQ(render("{% for m in messages %}{% if m.content is not none %}text{% endif %}{% endfor %}", variables), "");
  EXPECT_EQ(render("{% for m in messages %}[{{ m.content }}]{{ 'x' in m.content }}{% endfor %}", variables), "[]False");
}

}  // namespace weft::chat_template_test
