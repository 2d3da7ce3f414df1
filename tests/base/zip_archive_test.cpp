#include "base/zip_archive.h"

#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::zip_archive_test {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ZipArchive : public ::testing::Test {
 protected:
  // The archive has members to map, one to pack and an empty one.
  std::string write(const std::string& name) const {
    ZipWriter archive(folder_ / name);
    archive.add_mappable("folder/mapped", bytes_of(mapped_));
    archive.add_mappable("second", bytes_of(second_));
    archive.add_mappable("third", bytes_of(mapped_));
    archive.add("packed", bytes_of(packed_));
    archive.add("empty", {});
    archive.write();
    return folder_ / name;
  }

  const TemporaryFolder folder_;
  const std::string mapped_ = "mapped as it is", second_ = std::string(5000, 's'), packed_ = std::string(100'000, 'p');
};

TEST_F(ZipArchive, GivesBackWhatWasAdded) {
  const ZipReader archive(write("a.zip"));
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"folder/mapped", "second", "third", "packed", "empty"}));
  EXPECT_EQ(text_of(archive.read(0, 100)), mapped_);
  EXPECT_EQ(text_of(archive.read(3, packed_.size())), packed_);
  EXPECT_EQ(text_of(archive.read(4, 0)), "");
  EXPECT_NE(message_of([&] { archive.read(3, packed_.size() - 1); }).find("more than 99999 bytes"), std::string::npos);
  EXPECT_NE(message_of([&] { archive.read(5, 100); }), "");
}

TEST_F(ZipArchive, EqualMembersGiveEqualFiles) {
  EXPECT_EQ(read_file(write("a.zip"), 1 << 20), read_file(write("b.zip"), 1 << 20));
}

TEST_F(ZipArchive, TheFirstMembersBeginOnPages) {
  const std::string path = write("a.zip"), file = read_file(path, 1 << 20);
  const std::vector<FilePart> places = ZipReader(path).places_of_first(3);
  ASSERT_EQ(places.size(), 3u);
  const std::string* texts[] = {&mapped_, &second_, &mapped_};
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(file.substr(places[i].offset, places[i].bytes), *texts[i]) << i;
    EXPECT_EQ(places[i].offset % 4096, 0u) << i;
  }
  EXPECT_EQ(places[0].offset, 4096u);
  EXPECT_TRUE(ZipReader(path).places_of_first(0).empty());
  EXPECT_NE(message_of([&] { ZipReader(path).places_of_first(4); }).find("\"packed\" packed, which cannot be mapped"),
            std::string::npos);
  EXPECT_NE(message_of([&] { ZipReader(path).places_of_first(6); }), "");
  ZipWriter other(folder_ / "packed.zip");
  other.add("packed", bytes_of(packed_));
  EXPECT_NE(message_of<InternalError>([&] { other.add_mappable("late", bytes_of(mapped_)); }).find("follows a member"),
            std::string::npos);
}

// The directory at the end may say so in an archive of another program.
TEST_F(ZipArchive, AMemberElsewhereThanBehindTheOneBeforeIsNotMapped) {
  std::string file = read_file(write("a.zip"), 1 << 20);
  const std::size_t second = file.find("PK\x03\x04", 1), end = file.find("PK\x05\x06");
  const auto shift = [&](std::size_t at) {
    std::uint32_t place = 0;
    std::memcpy(&place, file.data() + at, sizeof place);
    place += 1;
    std::memcpy(file.data() + at, &place, sizeof place);
  };
  shift(end + 16);
  std::size_t entry = file.find("PK\x01\x02");
  while ((entry = file.find("PK\x01\x02", entry + 1)) != std::string::npos) shift(entry + 42);
  file.insert(second, "x");
  write_then_rename(folder_ / "b.zip", file);
  const ZipReader archive(folder_ / "b.zip");
  EXPECT_EQ(text_of(archive.read(1, 1 << 20)), second_);
  EXPECT_EQ(archive.places_of_first(1).size(), 1u);
  EXPECT_NE(message_of([&] { archive.places_of_first(2); }).find("but it is not there as it is"), std::string::npos);
}

TEST_F(ZipArchive, WhatIsNotWrittenLeavesNothing) {
  {
    ZipWriter archive(folder_ / "a.zip");
    archive.add("packed", bytes_of(packed_));
  }
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(ZipArchive, RefusesWhatIsNone) {
  EXPECT_NE(message_of([&] { ZipReader(folder_ / "none"); }).find("No such file"), std::string::npos);
  write_then_rename(folder_ / "text", std::string_view("no archive"));
  EXPECT_NE(message_of([&] { ZipReader(folder_ / "text"); }).find("cannot be opened as an archive"), std::string::npos);
  ZipWriter nowhere(folder_ / "none/a.zip");
  nowhere.add("packed", bytes_of(packed_));
  EXPECT_NE(message_of([&] { nowhere.write(); }).find("cannot be written"), std::string::npos);
}

}  // namespace weft::zip_archive_test
