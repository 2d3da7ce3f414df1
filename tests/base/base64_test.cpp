#include "base/base64.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::base64_test {

// The vectors of RFC 4648.
TEST(Base64, Decodes) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode_base64("Zm8"), "fo");
  EXPECT_EQ(decode_base64("+/8="), "\xFB\xFF");
}

TEST(Base64, Encodes) {
  for (const char* text : {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmFy", "+/8="})
    EXPECT_EQ(encode_base64(decode_base64(text).value()), text);
}

TEST(Base64, RefusesOtherText) {
  for (const char* text : {"Z", "Zg=a", "Z g=", "====", "\xC3\xA9==", "Zm9v Zg=="})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

}  // namespace weft::base64_test
