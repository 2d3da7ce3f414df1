#include "server/http_message.h"

#include <gtest/gtest.h>

namespace weft::http_message_test {

TEST(HttpBody, IsTheTextOfItsParts) {
  HttpBody empty;
  EXPECT_EQ(empty.take_text(), "");
  std::string wanted;
  for (std::size_t i = 0; i < 3'500'000; ++i) wanted += static_cast<char>('a' + i % 23);
  for (const std::size_t part : {std::size_t{700'001}, std::size_t{1} << 20, std::size_t{5'000'000}}) {
    HttpBody body;
    for (std::size_t at = 0; at < wanted.size(); at += part) body.append(std::string_view(wanted).substr(at, part));
    EXPECT_TRUE(body.take_text() == wanted) << part;
    EXPECT_EQ(body.take_text(), "") << "it was taken";
  }
}

}  // namespace weft::http_message_test
