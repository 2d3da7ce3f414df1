// The expected texts are those of Jinja 3.1.6 in the environment of transformers 5.

#include <gtest/gtest.h>

#include "tests/io/jinja/cases.h"

namespace weft::renderer_test {

TEST(JinjaRenderer, RunsElseOfALoopWithoutAFinishedRound) {
  expect_texts({
      {"{% for x in [1] %}{% break %}{% else %}E{% endfor %}", "E"},
      {"{% for x in [1] %}{% continue %}{% else %}E{% endfor %}", "E"},
      {"{% for x in [1,2] %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% else %}E{% endfor %}", "2"},
      {"{% for x in [] %}{% else %}E{% endfor %}", "E"},
  });
}

TEST(JinjaRenderer, KnowsTheNeighboursInALoop) {
  expect_texts({
      {"{% for x in [1,2,3,4,5] if x is odd %}{{ x }}:{{ loop.index }}/{{ loop.length }}{{ loop.last }} {{ "
       "loop.nextitem }} {{ loop.previtem }} {{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}",
       "1:1/3False 3  32;3:2/3False 5 1 21;5:3/3True  3 10;"},
      {R"({% for x in [1,1,2] %}{{ loop.changed(x) }} {% endfor %}{% for x in "ab" %}{{ loop.cycle(1,2,3) }}{% endfor %}{{ loop is defined }})",
       "True False True 12False"},
      {"{% for x in [1,2,3] %}{% for y in [1,2] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
       "121122123"},
      {"{% for x in [1,2] %}{{ loop }}{% endfor %}", "<LoopContext 1/2><LoopContext 2/2>"},
  });
}

TEST(JinjaRenderer, AsksTheConditionOfALoopAsItGoes) {
  expect_texts({
      {"{% set ns = namespace(go=true) %}{% for x in [1,2,3] if ns.go %}{{ x }}{% set ns.go = false %}{% endfor %}",
       "1"},
      {"{% set ns = namespace(go=true) %}{% for x in [1,2,3] if ns.go %}{{ x }}{{ loop.last }}{% set ns.go = false "
       "%}{% endfor %}",
       "1False2True"},
  });
}

TEST(JinjaRenderer, RunsRecursiveLoops) {
  expect_texts({
      {"{% for x in [[1,[2]],3] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{{ "
       "loop.depth0 }}{% endif %}{% endfor %}",
       "(1@21(2@32))3@10"},
  });
  expect_errors({
      "{% for x in [1,2] %}{{ loop([3]) }}{% endfor %}",
  });
}

TEST(JinjaRenderer, UnpacksValues) {
  expect_texts({
      {"{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"},
      {R"({% set ns = namespace({"a":1}, b=2) %}{% set ns.a, q = 5, 6 %}{{ ns.a }}{{ ns["b"] }}{{ q }})", "526"},
  });
  expect_errors({
      "{% for a, b in [[1,2,3]] %}{% endfor %}",
      "{% for a in 5 %}{% endfor %}",
  });
}

TEST(JinjaRenderer, KeepsVariablesInTheirScope) {
  expect_texts({
      {"{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 9 "
       "%}{% endif %}{{ x }}",
       "151519"},
      {"{% with a = 1, b = a %}{{ a }}{{ b }}{% set z = 3 %}{% endwith %}{{ a }}{{ z }}", "1"},
      {R"({% set x %}  a {{ 1 }} {% endset %}[{{ x }}]{% set y | upper | trim %} abc {% endset %}[{{ y }}]{% filter upper | replace("A", "z") %}abc{% endfilter %})",
       "[  a 1 ][ABC]zBC"},
      {"{% generation %}a{% set q = 1 %}{{ q }}{% endgeneration %}{{ q is defined }}", "a1False"},
  });
}

TEST(JinjaRenderer, BindsMacroParameters) {
  expect_texts({
      {"{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }} {{ m(1, 3, 4, "
       "5, x=6) }} {{ m(b=1) }}",
       "121(){} 134(5,){'x': 6} 1(){}"},
      {"{% macro m(a) %}[{{ a }}{{ a is defined }}]{% endmacro %}{{ m() }} {{ m }} {{ m.name }} {{ m.arguments }}",
       "[False] <Macro 'm'> m ('a',)"},
      {R"({% macro m(x) %}{{ x }}{% endmacro %}{{ m(*[1]) }}{{ m(**{"x": 2}) }})", "12"},
  });
  expect_errors({
      "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
      "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
  });
}

TEST(JinjaRenderer, LetsMacrosSeeWhereTheyWereMade) {
  expect_texts({
      {"{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}", "12"},
      {"{% macro m() %}{% set x = 5 %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{{ x }}", "51"},
      {"{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "AB"},
  });
  expect_errors({
      "{{ m() }}{% macro m() %}x{% endmacro %}",
  });
}

TEST(JinjaRenderer, GivesCallBlocksToTheirMacro) {
  expect_texts({
      {"{% macro list_of(xs) %}{% for x in xs %}{{ caller(x) }};{% endfor %}{% endmacro %}{% call(x) list_of([1,2]) "
       "%}={{ x }}{% endcall %}",
       "=1;=2;"},
      {"{% macro outer() %}<{{ caller() }}>{% endmacro %}{% call outer() %}hi{% endcall %}", "<hi>"},
  });
  expect_errors({
      "{% macro outer() %}{{ caller() }}{% endmacro %}{{ outer() }}",
  });
}

TEST(JinjaRenderer, OffersFunctions) {
  expect_texts({
      {R"({% set c = cycler("a","b") %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }} {% set j = joiner("|") %}{{ j() }}{{ j() }})",
       "abab |"},
      {R"({{ dict(a=1, b=2) }} {{ dict([["a",1]]) }} {{ dict(**d) }} {{ range(5, 0, -2)|list }} {{ {1:"a", 1.0:"b", true:"c"} }})",
       "{'a': 1, 'b': 2} {'a': 1} {'x': 1, 'y': [1, 2, 3], 'z': None} [5, 3, 1] {1: 'c'}"},
      {R"({{ strftime_now("%Y")|length }} {{ strftime_now("%d %b %Y")|length }} {{ strftime_now("%%") }})", "4 11 %"},
  });
  expect_errors({
      "{{ dict(1) }}",
      "{{ range(1,2,0) }}",
  });
}

TEST(JinjaRenderer, StripsSpaceAsJinjaDoes) {
  expect_texts({
      {"  {% if true %}x{% endif %}\n   {# note #}\n  {{ 1 }}\n", "x  1"},
      {"a \n {%- if true -%} \n b \n {%- endif -%} \n c", "abc"},
      {"x\n  {%+ if true %}y{% endif +%}\nz", "x\n  y\nz"},
      {"{# a #}b{#- c -#}  d\n\n", "bd\n"},
      {"  {% raw %} {{ not }}\n  {% if %}{% endraw %}\n|{%- raw -%}  x  {%- endraw -%}  y",
       " {{ not }}\n  {% if %}|xy"},
      {"a\r\nb\rc\n{{ \"{{\" }} {{ '%}' }}", "a\nb\nc\n{{ %}"},
      {"{{ 1 -}}\n  {% if true %}\n  y{% endif %}", "1  y"},
  });
}

TEST(JinjaRenderer, RefusesWhatIsNoTemplate) {
  expect_errors({
      "{% if true %}",
      "{% endfor %}",
      "{{ }}",
      "{{ 1 + }}",
      "{{ (1 }}",
      "{{ 1 2 }}",
      "{{ a.b. }}",
      R"({{ "abc }})",
      "{{ 1 | }}",
      "{% set 1 = 2 %}",
      "{% set true = 2 %}",
      "{% for loop in [1] %}{% endfor %}",
      "{% macro m(a=1, b) %}{% endmacro %}",
      "{% break %}",
      "{% for i in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
      R"({% include "x" %})",
      "{% do x %}",
      "{{ $ }}",
      "{{ f(a=1, 2) }}",
      "{{ ( ] }}",
      "{# x",
      "{% raw %}x",
      R"({{ "a" is frobnicate }})",
  });
}

}  // namespace weft::renderer_test
