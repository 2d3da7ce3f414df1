#include "cache/cache_archive.h"

#include <random>

#include <gtest/gtest.h>
#include <zip.h>

#include "base/error.h"
#include "cache/entry_file.h"
#include "tests/cache/cache_case.h"
#include "tests/thrown_message.h"

namespace weft::cache_archive_test {

// An archive made by another program.
void write_archive(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  ASSERT_NE(archive, nullptr);
  for (const auto& [name, content] : members) {
    zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
    ASSERT_GE(zip_file_add(archive, name.c_str(), source, 0), 0) << zip_strerror(archive);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

std::string entry_text(int number) {
  const std::vector<std::byte> payload = numbered_payload(number);
  std::vector<std::byte> bytes = entry_header(numbered_key(number), payload);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void fill(CacheCase& files, int count) {
  const auto cache = files.open();
  for (int number = 0; number < count; ++number)
    ASSERT_TRUE(cache->store(numbered_key(number, number % 2 == 0 ? "rows" : "plan"), numbered_payload(number)));
}

TEST(CacheArchive, CarriesAllEntriesToAnotherFolder) {
  CacheCase from, to;
  fill(from, 6);
  const std::string archive = from.folder() / "cache.zip";
  EXPECT_EQ(export_cache(*from.open(), archive).entries, 6u);
  const auto cache = to.open();
  const CacheImport result = import_cache(*cache, archive);
  EXPECT_EQ(result.entries, 6u);
  EXPECT_TRUE(result.problems.empty());
  for (int number = 0; number < 6; ++number) {
    const std::string kind = number % 2 == 0 ? "rows" : "plan";
    EXPECT_EQ(finds(*cache, number, 1000, kind), true);
    EXPECT_EQ(file_text(to.path_of(numbered_key(number, kind))), file_text(from.path_of(numbered_key(number, kind))));
  }
}

TEST(CacheArchive, IsTheSameBytesWheneverAndWhereverItIsWritten) {
  CacheCase one, other;
  fill(one, 3);
  fill(other, 3);
  ASSERT_TRUE(other.open()->store(numbered_key(0), numbered_payload(0)));
  export_cache(*one.open(), one.folder() / "a.zip");
  export_cache(*other.open(), other.folder() / "b.zip");
  const std::string archive = file_text(one.folder() / "a.zip");
  EXPECT_EQ(archive, file_text(other.folder() / "b.zip"));
  EXPECT_EQ(archive.substr(10, 4), std::string("\0\0\x21\0", 4));  // always 1980-01-01
}

TEST(CacheArchive, BadEntriesStayAtHome) {
  CacheCase files;
  fill(files, 4);
  put_text(files.path_of(numbered_key(2)), "damaged");
  const CacheExport result = export_cache(*files.open(), files.folder() / "cache.zip");
  EXPECT_EQ(result.entries, 3u);
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_NE(result.problems[0].find(files.path_of(numbered_key(2))), std::string::npos);
}

TEST(CacheArchive, RefusesToExportNothingOrToNowhere) {
  CacheCase files;
  put_text(files.folder() / "old", "what was there");
  EXPECT_NE(message_of([&] { export_cache(*files.open(), files.folder() / "old"); }).find("there is no entry"),
            std::string::npos);
  EXPECT_EQ(file_text(files.folder() / "old"), "what was there");
  fill(files, 1);
  EXPECT_NE(message_of([&] { export_cache(*files.open(), "/nonexistent/cache.zip"); }).find("/nonexistent/cache.zip"),
            std::string::npos);
  CompileCache disabled;
  EXPECT_NE(message_of([&] { import_cache(disabled, files.folder() / "old"); }).find("disabled"), std::string::npos);
}

TEST(CacheArchive, NamesInTheArchiveAreNoPaths) {
  CacheCase files;
  const std::string archive = files.folder() / "cache.zip";
  write_archive(archive, {{"../../evil", entry_text(1)}, {"/etc/evil", entry_text(2)}, {"", entry_text(3)}});
  const auto cache = files.open();
  EXPECT_EQ(import_cache(*cache, archive).entries, 3u);
  for (const int number : {1, 2, 3}) EXPECT_EQ(finds(*cache, number), true);
  EXPECT_EQ(files.files(), 3u);
  EXPECT_EQ(files.folder().names().size(), 2u);  // the archive and the cache
}

TEST(CacheArchive, TakesWhatIsSoundAndSaysWhatIsNot) {
  CacheCase files;
  const std::string archive = files.folder() / "cache.zip";
  std::string damaged = entry_text(1);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  write_archive(archive, {{"text", "#!/bin/sh"}, {"damaged", damaged}, {"good", entry_text(2)}, {"folder/", ""}});
  const auto cache = files.open();
  const CacheImport result = import_cache(*cache, archive);
  EXPECT_EQ(result.entries, 1u);
  EXPECT_EQ(result.problems.size(), 3u);
  EXPECT_EQ(finds(*cache, 1), std::nullopt);
  EXPECT_EQ(finds(*cache, 2), true);
}

TEST(CacheArchive, ReadsNoMoreOfAMemberThanTheCacheMayHold) {
  CacheCase files;
  const std::string archive = files.folder() / "cache.zip";
  write_archive(archive, {{"zeros", std::string(64 << 20, '\0')}, {"good", entry_text(2)}});
  ASSERT_LT(std::filesystem::file_size(archive), 100'000u);
  const auto cache = files.open(hasty_disk(), 2 << 20);
  const CacheImport result = import_cache(*cache, archive);
  EXPECT_EQ(result.entries, 1u);
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0], "[\"zeros\"] it has more than 2097152 bytes");
}

// Whatever is imported of a damaged archive is right.
TEST(CacheArchive, TruncatedFlippedAndForeignFilesDoNoHarm) {
  CacheCase from;
  fill(from, 3);
  const std::string whole_path = from.folder() / "cache.zip", path = from.folder() / "damaged.zip";
  export_cache(*from.open(), whole_path);
  const std::string whole = file_text(whole_path);
  std::mt19937 random(5);
  std::vector<std::string> contents{"", "PK", "not an archive", std::string(100'000, 'x')};
  for (std::size_t i = 0; i < 100; ++i) contents.push_back(whole.substr(0, whole.size() * i / 100));
  for (int i = 0; i < 200; ++i) {
    contents.push_back(whole);
    const std::size_t at = random() % whole.size();
    contents.back()[at] = static_cast<char>(contents.back()[at] ^ 1 << random() % 8);
  }
  int refused = 0;
  for (const std::string& content : contents) {
    CacheCase to;
    std::filesystem::remove(path);  // the disk is waited for when a file is written over
    put_text(path, content);
    const auto cache = to.open();
    try {
      import_cache(*cache, path);
    } catch (const UserError&) {
      ++refused;
    }
    for (int number = 0; number < 3; ++number)
      EXPECT_NE(finds(*cache, number, 1000, number % 2 == 0 ? "rows" : "plan"), false);
    EXPECT_EQ(cache->counters().rejected, 0);
  }
  EXPECT_GE(refused, 100);
}

}  // namespace weft::cache_archive_test
