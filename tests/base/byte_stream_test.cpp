#include "base/byte_stream.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/thrown_message.h"

namespace weft::byte_stream_test {

TEST(ByteStream, GivesBackWhatWasWritten) {
  ByteWriter writer;
  writer.number(std::uint8_t{200});
  writer.number(std::int32_t{-1});
  writer.number(std::numeric_limits<std::int64_t>::min());
  writer.number(std::numeric_limits<std::uint64_t>::max());
  writer.boolean(true);
  writer.real(-0.0);
  writer.text(std::string_view("a\0b", 3));
  writer.count(1);
  writer.hash(hash_bytes("ab"));
  writer.boolean(false);
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.number<std::uint8_t>(), 200);
  EXPECT_EQ(reader.number<std::int32_t>(), -1);
  EXPECT_EQ(reader.number<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(reader.number<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(reader.boolean());
  EXPECT_TRUE(std::signbit(reader.real()));
  EXPECT_EQ(reader.text(), std::string_view("a\0b", 3));
  EXPECT_EQ(reader.count(), 1u);
  EXPECT_EQ(reader.hash(), hash_bytes("ab"));
  EXPECT_FALSE(reader.boolean());
  EXPECT_EQ(reader.left(), 0u);
  EXPECT_EQ(reader.position(), writer.bytes().size());
}

TEST(ByteStream, IsLittleEndian) {
  ByteWriter writer;
  writer.number(std::int32_t{0x01020304});
  writer.text("hi");
  const std::vector<std::byte> bytes = writer.take();
  const std::string expected("\x04\x03\x02\x01\x02\0\0\0hi", 10);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), expected);
}

TEST(ByteStream, NamesThePlaceOfWhatIsNotThere) {
  ByteWriter writer;
  writer.count(7);
  writer.number(std::uint8_t{2});
  const auto error_of = [&](auto&& read) {
    ByteReader reader(writer.bytes());
    return message_of([&] { read(reader); });
  };
  EXPECT_EQ(error_of([](ByteReader& reader) { reader.number<std::int64_t>(); }),
            "wanted 8 bytes at byte 0, but only 5 are left");
  EXPECT_EQ(error_of([](ByteReader& reader) { reader.text(); }),
            "byte 0 begins a list of 7, but only 1 bytes are left");
  EXPECT_EQ(error_of([](ByteReader& reader) {
              reader.raw(4);
              reader.boolean();
            }),
            "byte 4 must be 0 or 1, but is 2");
  EXPECT_EQ(error_of([](ByteReader& reader) { reader.raw(5); }), "");
}

}  // namespace weft::byte_stream_test
