#include "base/python_text.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace weft::python_text_test {

std::string json_of(const std::string& text) {
  const auto json = json_of_python(text);
  if (!json) return "none";
  const Json parsed = parse_json(*json);
  return parsed.is_discarded() ? "no JSON: " + *json : json_text(parsed);
}

TEST(JsonOfPython, RewritesWhatVllmPrints) {
  EXPECT_EQ(json_of("{'a': True, 'b': False, 'c': None, 'd': [1, -2.5, 1e-05]}"),
            R"({"a":true,"b":false,"c":null,"d":[1,-2.5,1e-05]})");
  EXPECT_EQ(json_of("(1, 2)"), "[1,2]");
  EXPECT_EQ(json_of("[(1,), ()]"), "[[1],[]]");
  EXPECT_EQ(json_of("<CompilationMode.VLLM_COMPILE: 3>"), R"("VLLM_COMPILE")");
  EXPECT_EQ(json_of("[<CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, <DynamicShapesType.BACKED: 'backed'>]"),
            R"(["FULL_AND_PIECEWISE","BACKED"])");
  EXPECT_EQ(json_of("<bound method f of <C object at 0x1>>"), R"("<bound method f of <C object at 0x1>>")");
  EXPECT_EQ(json_of("[PosixPath('/a'), Counter({'x': 1}), set(), Counter()]"), R"(["/a",{"x":1},null,null])");
  EXPECT_EQ(json_of(R"(["it's", 'say "x"', 'it\'s', '\x41\n\\'])"), R"(["it's","say \"x\"","it's","A\n\\"])");
}

TEST(JsonOfPython, LeavesJsonAsItIs) {
  const std::string json = R"({"a":[1,2.5,true,null,"x\"'()<>True"]})";
  EXPECT_EQ(json_of(json), json);
}

TEST(JsonOfPython, RefusesTextThatEndsInTheMiddle) {
  for (const char* text : {"'a", "\"a", "'a\\", "<A.B: 1", "<<>", "(1", "f(", ")", "[1)"})
    EXPECT_TRUE(json_of(text) == "none" || json_of(text).starts_with("no JSON")) << text;
  EXPECT_TRUE(json_of("{'a': nothing}").starts_with("no JSON"));
}

}  // namespace weft::python_text_test
