#include "report/json_page.h"

#include <gtest/gtest.h>

namespace weft::json_page_test {

bool has(const std::string& page, const std::string& part) { return page.find(part) != std::string::npos; }

TEST(JsonPage, HasTextsAsTheyAre) {
  const std::string page = json_page("<b> & \"c\"", "a < b", {{"name", "<script>"}});
  EXPECT_TRUE(has(page, "<title>&lt;b&gt; &amp; &#34;c&#34;</title>"));
  EXPECT_TRUE(has(page, "<pre>a &lt; b</pre>"));
  EXPECT_TRUE(has(page, "&lt;script&gt;"));
  EXPECT_FALSE(has(page, "<script"));
}

TEST(JsonPage, HasAColumnForEachKeyOfAListOfObjects) {
  const Json list = {{{"first", 1}, {"second", "x"}}, {{"first", 2}, {"third_one", {1, 2}}}};
  const std::string page = json_page("t", "", {{"rows", list}});
  EXPECT_TRUE(has(page, "<summary>rows (2)</summary>"));
  EXPECT_TRUE(has(page, "<tr><th>first</th><th>second</th><th>third one</th></tr>"));
  EXPECT_TRUE(has(page, "<tr><td class=number>1</td><td>x</td><td><span class=none>none</span></td></tr>"));
  EXPECT_TRUE(has(page, "<td>1, 2</td>"));
}

TEST(JsonPage, HasATableOfTheKeysOfAnObject) {
  const std::string page = json_page("t", "", {{"memory", {{"kv_cache", 3}, {"measured", nullptr}, {"is_on", true}}}});
  EXPECT_TRUE(has(page, "<tr><th>kv cache</th><td class=number>3</td></tr>"));
  EXPECT_TRUE(has(page, "<tr><th>measured</th><td><span class=none>none</span></td></tr>"));
  EXPECT_TRUE(has(page, "<td>true</td>"));
}

}  // namespace weft::json_page_test
