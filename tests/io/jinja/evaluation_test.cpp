// The expected texts are those of Jinja 3.1.6 in the environment of transformers 5.

#include <gtest/gtest.h>

#include "tests/io/jinja/cases.h"

namespace weft::evaluation_test {

TEST(JinjaEvaluation, CalculatesAsPythonDoes) {
  expect_texts({
      {"{{ 7 // -2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}", "-4 -4 -2 2 3.0 0.5"},
      {"{{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 10 / 4 }} {{ 10 / 5 }}", "0.5 64 4 2.5 2.0"},
      {"{{ 1e308 * 10 }} {{ 1e308 * 10 - 1e308 * 10 }} {{ true + 1 }}", "inf nan 2"},
      {"{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }}", "9223372036854775807 -9223372036854775808"},
      {R"({{ "a" * 3 }} {{ [0] * 2 }} {{ (1,) * 2 }} {{ "a" * -1 }}|{{ [1] + [2] }})", "aaa [0, 0] (1, 1) |[1, 2]"},
  });
  expect_errors({
      "{{ 1 / 0 }}",
      "{{ 1 // 0 }}",
      "{{ 1 % 0 }}",
      "{{ 1.0 / 0 }}",
      R"({{ "a" - "b" }})",
      "{{ [1] + (2,) }}",
      R"({{ 1 + "a" }})",
  });
}

TEST(JinjaEvaluation, WritesNumbersAsPythonDoes) {
  expect_texts({
      {"{{ 1e16 }} {{ 1e15 }} {{ 123456789012345678.0 }} {{ 1e-4 }} {{ 1e-5 }} {{ 0.1 + 0.2 }}",
       "1e+16 1000000000000000.0 1.2345678901234568e+17 0.0001 1e-05 0.30000000000000004"},
      {"{{ 1e22 }} {{ 1.5e300 }} {{ 100000.0 }} {{ -0.0 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }}",
       "1e+22 1.5e+300 100000.0 -0.0 31 5 15 1000"},
  });
}

TEST(JinjaEvaluation, ComparesAsPythonDoes) {
  expect_texts({
      {R"({{ true == 1 }} {{ 1 == 1.0 }} {{ "1" == 1 }} {{ none == false }} {{ (1,2) == [1,2] }} {{ {"a":1} == {"a":1.0} }})",
       "True True False False False True"},
      {R"({{ 1 < 2 < 3 }} {{ 1 < 3 > 2 }} {{ 1 == 1 == 1 }} {{ [1,2] < [1,3] }} {{ (1,) < (1,0) }} {{ "a" < "b" }})",
       "True True True True True True"},
      {R"({{ "b" in "abc" }} {{ 3 not in [1] }} {{ "x" in d }} {{ "x" in d.keys() }} {{ ("x", 1) in d.items() }})",
       "True True True True True"},
  });
  expect_errors({
      R"({{ "a" < 1 }})",
      R"({{ 1 in "abc" }})",
      "{{ 1 in 5 }}",
      "{{ [1] in {} }}",
  });
}

TEST(JinjaEvaluation, GivesOperandsOfAndAndOr) {
  expect_texts({
      {R"({{ [] or "x" }} {{ [] and "x" }} {{ 1 and 2 }} {{ 0 or none }} {{ not [] }})", "x [] 2 None True"},
      {R"({{ "yes" if messages else "no" }} {{ ("a" if false) is defined }} {{ 1 if false else 2 if false else 3 }})",
       "yes False 3"},
  });
}

TEST(JinjaEvaluation, BindsOperatorsAsJinjaDoes) {
  expect_texts({
      {R"({{ "a" | upper ~ "b" | upper }} {{ "x" + "b" | upper }} {{ (1) }} {{ (1,) }} {{ () }} {{ 1, 2 }} {{ [1,] }})",
       "AB xB 1 (1,) () (1, 2) [1]"},
  });
  expect_errors({
      R"({{ "a" ~ 1 + 2 }})",
      R"({{ 1 + 2 ~ "3" }})",
      "{{ 2 * 3 ~ 4 }} {{ -1 ~ 2 }} {{ 1 - -1 }} {{ - -1 }} {{ not 1 == 2 }} {{ -5 | abs }} {{ 2 ** 2 | string }}",
  });
}

TEST(JinjaEvaluation, TakesItemsAndSlices) {
  expect_texts({
      {R"({{ "abc"[0] }}{{ "abc"[-1] }}{{ "abc"[5] }}|{{ [1,2][5] }}|{{ none.foo }}|{{ none["x"] }})", "ac|||"},
      {R"({{ "日本語"[1] }}{{ "日本語"[::-1] }}{{ "日本語"[:2] }}{{ "日本語"[-5:] }}{{ "日本語" | length }})",
       "本語本日日本日本語3"},
      {"{{ [1,2,3,4,5][-2:0:-1] }} {{ [1,2,3,4,5][::-2] }} {{ [1,2,3][10:] }} {{ (1,2,3)[1:] }} {{ [[1,2],[3]].0.1 }}",
       "[4, 3, 2] [5, 3, 1] [] (2, 3) 2"},
      {R"({{ d.foo }}|{{ d["foo"] }}|{{ d.get("foo", 3) }}|{{ d.get("x") }}|{{ d["y"][1] }}|{{ messages[-1].tags[0] }})",
       "||3|1|2|a"},
  });
  expect_errors({
      R"({{ "abc"[::0] }})",
      R"({{ d.y["a":] }})",
  });
}

TEST(JinjaEvaluation, PrintsContainersAsPythonDoes) {
  expect_texts({
      {R"({{ [missing, none, true, "a'b", 'a"b', "a'\"b", 1.0] }} {{ {1: (1,), "k": {}} }})",
       R"([Undefined, None, True, "a'b", 'a"b', 'a\'"b', 1.0] {1: (1,), 'k': {}})"},
      {R"({{ ["\n\t\\\x7f\u00e9\u200b\u3000😀"] }} {{ d.items() }} {{ d.keys() }} {{ range(3) }} {{ range(1,9,2) }} {{ namespace(a=1) }})",
       R"(['\n\t\\\x7fé\u200b\u3000😀'] dict_items([('x', 1), ('y', [1, 2, 3]), ('z', None)]) dict_keys(['x', 'y', 'z']) range(0, 3) range(1, 9, 2) <Namespace {'a': 1}>)"},
  });
}

TEST(JinjaEvaluation, TreatsUndefinedAsJinjaDoes) {
  expect_texts({
      {R"({{ missing ~ "x" }}|{{ missing|length }}|{{ missing|join }}|{{ missing|upper }}|{{ missing|list }})",
       "x|0|||[]"},
      {R"({{ missing == missing2 }} {{ missing == none }} {{ "a" in missing }} {{ missing is iterable }} {{ missing is none }})",
       "True False False True False"},
  });
  expect_errors({
      "{{ d.nope is defined }} {{ messages[9] is defined }} {{ messages[9].role is defined }}",
      "{{ missing.x }}",
      "{{ missing + 1 }}",
      "{{ missing() }}",
      "{{ missing[0] }}",
      "{{ missing[1:] }}",
      "{{ missing < 1 }}",
      "{{ -missing }}",
      "{{ missing|int }}",
      "{{ missing|tojson }}",
      R"({{ missing.x|default("z") }})",
  });
}

TEST(JinjaEvaluation, RefusesToChangeValuesOrTouchInternals) {
  expect_texts({
      {R"({{ d.update }}|{{ [].append }}|{{ "".__class__ }}|{{ "".__class__ is defined }})", "|||False"},
  });
  expect_errors({
      R"({{ d.pop("x") }})",
      "{{ d.update({}) }}",
      "{{ messages.append({}) }}",
      R"({{ "".__class__.__mro__ }})",
      "{% set ns = namespace() %}{% set ns._x = 1 %}",
      "{% set d.x = 5 %}",
      "{{ range(200000) | length }}",
  });
}

TEST(JinjaEvaluation, UnescapesStringsAsPythonDoes) {
  expect_texts({
      {"{{ \"\\n\\t\\\\\\x41\\u00e9\\101\\q\" }}|{{ 'it' \"s\" }}|{{ \"a\\\nb\" }}", "\n\t\\AéA\\q|its|ab"},
  });
}

}  // namespace weft::evaluation_test
