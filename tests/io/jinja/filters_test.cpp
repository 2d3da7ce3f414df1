// The expected texts are those of Jinja 3.1.6 in the environment of transformers 5.

#include <gtest/gtest.h>

#include "tests/io/jinja/cases.h"

namespace weft::filters_test {

TEST(JinjaFilters, WritesJsonAsPythonDoes) {
  expect_texts({
      {R"({{ {"a":[1,2.0,{"b":none}], "c":"é<>&'\u2028"}|tojson }} {{ "é😀\x7f"|tojson(ensure_ascii=true) }})",
       R"({"a": [1, 2.0, {"b": null}], "c": "é<>&' "} "\u00e9\ud83d\ude00\u007f")"},
      {R"({{ {"b":1,"a":[]}|tojson(indent=2, sort_keys=true) }})", "{\n  \"a\": [],\n  \"b\": 1\n}"},
      {R"({{ [[],{}]|tojson(indent=1) }} {{ [1,{"a":2}]|tojson(separators=(",",":")) }} {{ [1,[2]]|tojson(indent="\t") }})",
       "[\n [],\n {}\n] [1,{\"a\":2}] [\n\t1,\n\t[\n\t\t2\n\t]\n]"},
      {R"({{ {1:2, none:3, 1.5:5}|tojson }} {{ (1,2)|tojson }} {{ "\x01\b\f\r"|tojson }} {{ 1e400|tojson }})",
       R"({"1": 2, "null": 3, "1.5": 5} [1, 2] "\u0001\b\f\r" Infinity)"},
  });
  expect_errors({
      "{{ range(3)|tojson }}",
      "{{ d.items()|tojson }}",
      "{{ {(1,2):3}|tojson }}",
  });
}

TEST(JinjaFilters, ChangesText) {
  expect_texts({
      {R"({{ "hello world's"|title }} {{ "HELLO"|capitalize }} {{ "a-b (c) [e] <f>"|title }} {{ " x "|trim }}| {{ "xax"|trim("x") }})",
       "Hello World's Hello A-B (C) [E] <F> x| a"},
      {R"({{ "a\nb\n\nc"|indent }} {{ "a\nb\n\nc"|indent(2, true) }} {{ "a\n\nb"|indent(2, blank=true) }} {{ "a\nb"|indent("> ") }})",
       "a\n    b\n\n    c   a\n  b\n\n  c a\n  \n  b a\n> b"},
      {R"({{ "hello world foo"|truncate(9) }} {{ "hello world foo"|truncate(9, true) }} {{ "hello world foo"|truncate(9, false, "…", 0) }})",
       "hello... hello ... hello…"},
      {R"({{ "a b, c-d"|wordcount }} {{ "abc"|reverse }} {{ "ab"|center(6) }}| {{ "aXbX"|replace("X", "-", 1) }})",
       "4 cba   ab  | a-bX"},
      {R"({{ "%s %s"|format("a", 1) }} {{ "%(x)s"|format(x=1) }} {{ none|string }} {{ [1]|string }})",
       "a 1 1 None [1]"},
  });
}

TEST(JinjaFilters, EscapesMarkupOnce) {
  expect_texts({
      {R"({{ "a & <b> \"c\" 'd'"|e }} {{ "<"|safe|e }} {{ "<"|e|e }} {{ "<"|e|forceescape }})",
       "a &amp; &lt;b&gt; &#34;c&#34; &#39;d&#39; < &lt; &amp;lt;"},
      {R"({{ ("<"|safe) + "<" }} {{ "<" + ("<"|safe) }} {{ "<"|safe ~ "<" }} {{ ["<"|safe] }} {{ ("%s"|safe) % "<" }} {{ ("-"|safe).join(["<", "a"]) }})",
       "<&lt; &lt;< << [Markup('<')] &lt; &lt;-a"},
  });
}

TEST(JinjaFilters, ConvertsNumbers) {
  expect_texts({
      {R"({{ "42"|int }} {{ "42.7"|int }} {{ "x"|int }} {{ "x"|int(5) }} {{ "ff"|int(base=16) }} {{ "0x1f"|int(0, 16) }} {{ " 7 "|int }} {{ "1_0"|int }} {{ none|int }} {{ true|int }} {{ -2.7|int }} {{ "1e3"|int }} {{ "inf"|int }})",
       "42 42 0 5 255 31 7 10 0 1 -2 1000 0"},
      {R"({{ "1.5"|float }} {{ "x"|float }} {{ "x"|float(2) }} {{ "inf"|float }} {{ "-nan"|float }} {{ ".5"|float }} {{ "1e999"|float }} {{ "1e-999"|float }})",
       "1.5 0.0 2 inf nan 0.5 inf 0.0"},
      {R"({{ 2.5|round }} {{ 3.5|round }} {{ 2.567|round(1) }} {{ 2.1|round(method="ceil") }} {{ 2.19|round(1, "floor") }} {{ 5|round }} {{ 1250|round(-2) }} {{ 1350|round(-2) }} {{ 1250.0|round(-2) }} {{ 0.15|round(1) }})",
       "2.0 4.0 2.6 3.0 2.1 5 1200 1400 1200.0 0.1"},
      {"{{ -5|abs }} {{ -5.5|abs }}", "5 5.5"},
  });
  expect_errors({
      R"({{ "a"|abs }})",
      "{{ 1e400|int }}",
  });
}

TEST(JinjaFilters, TakesListsApart) {
  expect_texts({
      {R"({{ [1,2]|first }}{{ "abc"|last }}{{ []|first }} {{ d|list }} {{ d|length }} {{ {"a":1}|items|list }} {{ missing|items|list }})",
       "1c ['x', 'y', 'z'] 3 [('a', 1)] []"},
      {R"({{ [1,2,3,4,5]|batch(2)|list }} {{ [1,2,3]|batch(2, "x")|list }} {{ [1,2,3,4,5]|slice(2)|list }} {{ [1,2,3]|slice(2, "x")|list }})",
       "[[1, 2], [3, 4], [5]] [[1, 2], [3, 'x']] [[1, 2, 3], [4, 5]] [[1, 2], [3, 'x']]"},
      {R"({{ [1,2,3]|sum }} {{ [1.5,2]|sum }} {{ []|sum }} {{ [[1],[2]]|sum(start=[]) }} {{ [{"a":1},{"a":2}]|sum("a") }} {{ [1,none,missing]|join("-") }} {{ messages|join(",", attribute="role") }})",
       "6 3.5 0 [1, 2] 3 1-None- system,user,assistant"},
  });
  expect_errors({
      R"({{ ["a"]|sum }})",
      "{{ [1]|items|list }}",
      R"({{ [1,2]|map("string")|length }})",
  });
}

TEST(JinjaFilters, SelectsAndMaps) {
  expect_texts({
      {R"({{ messages|selectattr("role", "equalto", "user")|map(attribute="content")|list }} {{ messages|rejectattr("role", "eq", "user")|list|length }} {{ messages|selectattr("tags")|list|length }})",
       "['Grüße'] 2 1"},
      {R"({{ [1,2,3,4]|select("odd")|list }} {{ [1,2,3,4]|reject("gt", 2)|list }} {{ [0,1,"",none]|select|list }} {{ messages|selectattr("tags", "defined")|map(attribute="role")|first }})",
       "[1, 3] [1, 2] [1] assistant"},
      {R"({{ messages|map(attribute="name", default="-")|list }} {{ ["a b"]|map("replace", " ", "_")|list }} {{ [{"a":{"b":[7]}}]|map(attribute="a.b.0")|list }} {{ none|map("upper")|list }})",
       "['-', '-', '-'] ['a_b'] [7] []"},
  });
  expect_errors({
      R"({{ [1]|map("frobnicate")|list }})",
      R"({{ [1]|select("frobnicate")|list }})",
  });
}

TEST(JinjaFilters, OrdersItems) {
  expect_texts({
      {R"({{ ["b","A","c"]|sort }} {{ ["b","A","c"]|sort(case_sensitive=true) }} {{ [3,1,2]|sort(reverse=true) }} {{ messages|sort(attribute="role")|map(attribute="role")|list }})",
       "['A', 'b', 'c'] ['A', 'b', 'c'] [3, 2, 1] ['assistant', 'system', 'user']"},
      {R"({{ {"b":1,"A":2}|dictsort }} {{ {"b":1,"A":2}|dictsort(true) }} {{ {"b":1,"a":2}|dictsort(by="value", reverse=true) }})",
       "[('A', 2), ('b', 1)] [('A', 2), ('b', 1)] [('a', 2), ('b', 1)]"},
      {R"({{ ["b","A"]|min }}{{ ["b","A"]|max }}{{ []|min }} {{ [{"a":1},{"a":2}]|max(attribute="a") }} {{ [1,1.0,true,"a","A"]|unique|list }})",
       "Ab {'a': 2} [1, 'a']"},
      {R"({% for g in messages|groupby("role") %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}{% for k, v in [{"a":1},{"a":1}]|groupby("a") %}{{ k }}{{ v }}{% endfor %})",
       "assistant:1 system:1 user:1 1[{'a': 1}, {'a': 1}]"},
  });
  expect_errors({
      R"({{ [1,"a"]|sort }})",
      "{{ [[1]]|unique|list }}",
  });
}

TEST(JinjaTests, TellKindsOfValuesApart) {
  expect_texts({
      {R"({{ 5 is divisibleby 2 }} {{ true is number }} {{ true is integer }} {{ 1.0 is float }} {{ {} is mapping }} {{ [] is sequence }} {{ "a" is sequence }} {{ d.items() is iterable }} {{ 5 is iterable }} {{ range is callable }})",
       "False True False True True True True True False True"},
      {R"({{ 1 is true }} {{ false is boolean }} {{ none is none }} {{ 1 is sameas true }} {{ 3 is not in [1,2] }} {{ "abc" is lower }} {{ 3 is not ne 4 }} {{ 1 is odd and 2 is even }} {{ x is not defined or x }})",
       "False True True False True True False True True"},
  });
}

TEST(JinjaFilters, CallsMethodsOfStrings) {
  expect_texts({
      {R"({{ "a,b,,c".split(",") }} {{ "a,b,c".rsplit(",", 1) }} {{ "  a  b ".split() }} {{ "  a  b c ".split(none, 1) }} {{ "  a b  c ".rsplit(maxsplit=1) }} {{ "".split() }} {{ "".split(",") }})",
       "['a', 'b', '', 'c'] ['a,b', 'c'] ['a', 'b'] ['a', 'b c '] ['  a b', 'c'] [] ['']"},
      {R"({{ "a-b-c".partition("-") }} {{ "a-b-c".rpartition("-") }} {{ "abc".rpartition("x") }} {{ "a\nb\r\nc\n".splitlines() }} {{ "a\n\nb".splitlines(true) }})",
       R"(('a', '-', 'b-c') ('a-b', '-', 'c') ('', '', 'abc') ['a', 'b', 'c'] ['a\n', '\n', 'b'])"},
      {R"({{ "abcabc".rfind("c") }} {{ "abcabc".find("c", 3) }} {{ "日本語".find("語") }} {{ "aaa".count("aa") }} {{ "abc".count("") }} {{ "abc".startswith(("x", "a")) }} {{ "abc".endswith("b", 0, 2) }})",
       "5 5 2 1 4 True True"},
      {R"({{ "abc".center(10, "*") }}|{{ "abc".ljust(6) }}|{{ "abc".rjust(6, "-") }}|{{ "-42".zfill(5) }}|{{ "ab".center(5) }}|{{ "xxabcxx".strip("x") }}|{{ "abcba".rstrip("ab") }}|{{ "\u00a0a\u3000".strip() }})",
       "***abc****|abc   |---abc|-0042|  ab |abc|abc|a"},
      {R"({{ "ß".upper() }} {{ "ßa".title() }} {{ "ΑΣ".lower() }} {{ "ﬁ"|upper }} {{ "ǆ".title() }} {{ "hello world's".title() }} {{ "Hi".swapcase() }})",
       "SS Ssa ας FI ǅ Hello World'S hI"},
      {R"({{ "abc".replace("", "-") }} {{ "aaa".replace("aa", "b") }} {{ "abc".replace("", "-", 2) }} {{ "²".isdigit() }} {{ "²".isdecimal() }} {{ "ab1".isalnum() }} {{ "Ab".istitle() }} {{ "é".isascii() }})",
       "-a-b-c- ba -a-bc True False True True False"},
  });
  expect_errors({
      R"({{ "abc".index("z") }})",
      R"({{ "".split("") }})",
      R"({{ ",".join([1]) }})",
      R"({{ "abc".frobnicate() }})",
  });
}

TEST(JinjaFilters, FillsFormatsIn) {
  expect_texts({
      {R"({{ "%s|%5d|%-5d|%05d|%+d|%.2f|%x|%X|%o|%e|%g|%%|%c|%r" % ("a", 3, 3, 3, 3, 3.14159, 255, 255, 8, 12345.678, 0.0001, "z", "q") }})",
       "a|    3|3    |00003|+3|3.14|ff|FF|10|1.234568e+04|0.0001|%|z|'q'"},
      {R"({{ "%.3d|%5.3d|%-8.3d|%+.3d|%#x|%#o" % (5, 5, 5, 5, 255, 8) }} {{ "%d" % 3.9 }} {{ "%5s|%-5s|%.2s" % ("abc","abc","abc") }} {{ "%*d" % (5, 3) }})",
       "005|  005|005     |+005|0xff|0o10 3   abc|abc  |ab     3"},
      {R"({{ "{} {}".format(1, "a") }} {{ "{0} {1} {0}".format("x", "y") }} {{ "{a}-{b!r}".format(a=1, b="q") }} {{ "{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}".format("a","b","c",42,3.14159,1234567) }})",
       "1 a x y x 1-'q'     a|b    |  c  |00042|3.14|1,234,567"},
      {R"({{ "{0[x]} {m[0]} {{}}".format({"x": 1}, m=[5]) }} {{ "{:#x}|{:b}|{:e}|{:%}|{:+d}|{: d}|{:*^7}".format(255,5,1234.5,0.25,5,5,"mid") }} {{ "{:.2}|{:.1}".format(3.14159, 5.0) }})",
       "1 5 {} 0xff|101|1.234500e+03|25.000000%|+5| 5|**mid** 3.1|5e+00"},
  });
  expect_errors({
      R"({{ "%d" % "a" }})",
      R"({{ "%s" % (1,2) }})",
      R"({{ "%s %s" % (1,) }})",
      R"({{ "{} {}".format(1) }})",
  });
}

}  // namespace weft::filters_test
