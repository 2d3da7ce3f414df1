// The page in the program: its size, its policy, and that it asks nothing of other servers.

#include "server/page/page.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::page_test {

TEST(Page, IsSmallAndWhole) {
  EXPECT_LT(kPage.size(), 60000U);
  EXPECT_TRUE(kPage.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(kPage.ends_with("</html>\n"));
  for (const char* left_over : {"@STYLE@", "@SCRIPT@", " src=", "@import", "innerHTML", "eval("})
    EXPECT_EQ(kPage.find(left_over), std::string_view::npos) << left_over;
  EXPECT_EQ(kPageScriptHash.size(), 7 + 44U);
}

TEST(Page, IsServedWithAPolicyUnlessItIsOff) {
  RunningServer running;
  const ClientResponse page = HttpClient(running.port()).get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, kPage);
  EXPECT_EQ(page.fields.at("content-type"), "text/html; charset=utf-8");
  EXPECT_NE(page.fields.at("content-security-policy").find(kPageScriptHash), std::string::npos);
  ServerSettings settings;
  settings.api.has_page = false;
  settings.api.keys = {"one"};
  RunningServer without(std::move(settings));
  EXPECT_EQ(HttpClient(without.port()).get("/", "Authorization: Bearer one\r\n").status, 404);
  EXPECT_EQ(HttpClient(running.port()).get("/nothing").status, 404);
}

}  // namespace weft::page_test
