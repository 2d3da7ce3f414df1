#include "base/zip_archive.h"

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
  // With a member to map, one to pack and an empty one.
  std::string write(const std::string& name) const {
    ZipWriter archive(folder_ / name);
    archive.add_mappable("folder/mapped", bytes_of(mapped_));
    archive.add("packed", bytes_of(packed_));
    archive.add("empty", {});
    archive.write();
    return folder_ / name;
  }

  const TemporaryFolder folder_;
  const std::string mapped_ = "mapped as it is", packed_ = std::string(100'000, 'p');
};

TEST_F(ZipArchive, GivesBackWhatWasAdded) {
  const ZipReader archive(write("a.zip"));
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"folder/mapped", "packed", "empty"}));
  EXPECT_EQ(text_of(archive.read(0, 100)), mapped_);
  EXPECT_EQ(text_of(archive.read(1, packed_.size())), packed_);
  EXPECT_EQ(text_of(archive.read(2, 0)), "");
  EXPECT_NE(message_of([&] { archive.read(1, packed_.size() - 1); }).find("more than 99999 bytes"), std::string::npos);
  EXPECT_NE(message_of([&] { archive.read(3, 100); }), "");
}

TEST_F(ZipArchive, EqualMembersGiveEqualFiles) {
  EXPECT_EQ(read_file(write("a.zip"), 1 << 20), read_file(write("b.zip"), 1 << 20));
}

TEST_F(ZipArchive, TheFirstMemberBeginsOnAPage) {
  const std::string path = write("a.zip");
  const FilePart place = ZipReader(path).place_of_first();
  EXPECT_EQ(place.offset, 4096u);
  EXPECT_EQ(read_file(path, 1 << 20).substr(place.offset, place.bytes), mapped_);
  ZipWriter other(folder_ / "packed.zip");
  other.add("packed", bytes_of(packed_));
  EXPECT_NE(message_of<InternalError>([&] { other.add_mappable("late", bytes_of(mapped_)); }).find("not the first"),
            std::string::npos);
  other.write();
  EXPECT_NE(message_of([&] { ZipReader(folder_ / "packed.zip").place_of_first(); }).find("cannot be mapped"),
            std::string::npos);
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
