#include "cache/compile_cache.h"

#include <cstdint>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/cache/cache_case.h"

namespace weft::compile_cache_test {

mode_t mode_of(const std::string& path) {
  struct stat status {};
  ::stat(path.c_str(), &status);
  return status.st_mode & 07777;
}

TEST(CompileCache, FindsWhatWasStoredAlsoInAnotherProcess) {
  CacheCase files;
  const auto cache = files.open();
  EXPECT_EQ(finds(*cache, 1), std::nullopt);
  EXPECT_TRUE(cache->store(numbered_key(1), numbered_payload(1)));
  EXPECT_EQ(finds(*cache, 1), true);
  EXPECT_EQ(finds(*cache, 2), std::nullopt);
  EXPECT_EQ(finds(*files.open(), 1), true);
  const CacheCounters counters = cache->counters();
  EXPECT_EQ(counters.hits, 1);
  EXPECT_EQ(counters.misses, 2);
  EXPECT_EQ(counters.stores, 1);
  EXPECT_EQ(counters.rejected + counters.failures, 0);
  EXPECT_TRUE(files.warnings.empty());
}

TEST(CompileCache, PayloadsOfAnySizeAreAligned) {
  CacheCase files;
  const auto cache = files.open();
  for (const std::size_t count : {0u, 1u, 63u, 64u, 65u, 5'000'000u}) {
    ASSERT_TRUE(cache->store(numbered_key(1), numbered_payload(1, count)));
    EXPECT_EQ(finds(*cache, 1, count), true) << count;
    const auto entry = cache->find(numbered_key(1));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(entry->payload().data()) % 64, 0u);
  }
  EXPECT_EQ(files.files(), 1u);
}

TEST(CompileCache, KeepsMachineCodeToItsOwner) {
  CacheCase files;
  const mode_t mask = ::umask(0);
  ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
  ::umask(mask);
  EXPECT_EQ(mode_of(files.root()), 0700u);
  EXPECT_EQ(mode_of(files.kind_folder()), 0700u);
  EXPECT_EQ(mode_of(files.path_of(numbered_key(1))), 0600u);
}

TEST(CompileCache, DisabledFindsNothingAndStoresNothing) {
  CompileCache cache;
  EXPECT_FALSE(cache.enabled());
  EXPECT_FALSE(cache.store(numbered_key(1), numbered_payload(1)));
  EXPECT_EQ(finds(cache, 1), std::nullopt);
  EXPECT_EQ(cache.counters().misses, 1);
  EXPECT_TRUE(cache.list().empty());
  EXPECT_EQ(cache.prune(0).entries, 0);
  EXPECT_FALSE(cache.explain(numbered_key(1)));
}

TEST(CompileCache, TruncatedAtAHundredPlacesIsAMissAndGoes) {
  CacheCase files;
  const std::string path = files.path_of(numbered_key(1));
  ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
  const std::string whole = file_text(path);
  for (std::size_t place = 0; place < 100; ++place) {
    put_text(path, whole.substr(0, whole.size() * place / 100));
    files.warnings.clear();
    const auto cache = files.open();
    EXPECT_EQ(finds(*cache, 1), std::nullopt) << place;
    EXPECT_EQ(cache->counters().rejected, 1);
    ASSERT_EQ(files.warnings.size(), 1u) << place;
    EXPECT_NE(files.warnings[0].find(path), std::string::npos) << files.warnings[0];
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
  EXPECT_EQ(file_text(path), whole);
}

TEST(CompileCache, FlippedBitsAreAMiss) {
  CacheCase files;
  const std::string path = files.path_of(numbered_key(1));
  ASSERT_TRUE(files.open()->store(numbered_key(1), numbered_payload(1)));
  const std::string whole = file_text(path);
  const std::size_t header = whole.size() - 1000;
  std::mt19937 random(7);
  std::vector<std::size_t> bits;
  for (std::size_t byte = 0; byte < header; ++byte) bits.push_back(byte * 8 + random() % 8);
  for (int i = 0; i < 100; ++i) bits.push_back(header * 8 + random() % 8000);
  for (const std::size_t bit : bits) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    put_text(path, flipped);
    EXPECT_EQ(finds(*files.open(), 1), std::nullopt) << bit;
  }
}

TEST(CompileCache, EntriesUnderOneAnothersNamesAreAMiss) {
  CacheCase files;
  const std::string first = files.path_of(numbered_key(1)), second = files.path_of(numbered_key(2));
  const std::string other_kind = files.path_of(numbered_key(1, "plan"));
  const auto cache = files.open();
  for (const int number : {1, 2}) ASSERT_TRUE(cache->store(numbered_key(number), numbered_payload(number)));
  ASSERT_TRUE(cache->store(numbered_key(1, "plan"), numbered_payload(3)));
  std::filesystem::rename(first, files.folder() / "aside");
  std::filesystem::rename(second, first);
  std::filesystem::rename(files.folder() / "aside", second);
  std::filesystem::copy(first, other_kind, std::filesystem::copy_options::overwrite_existing);
  for (const CacheListing& entry : cache->list()) {
    EXPECT_TRUE(entry.is_of_no_use) << entry.path;
    EXPECT_NE(entry.problem.find("under another name"), std::string::npos) << entry.problem;
  }
  EXPECT_EQ(finds(*cache, 1), std::nullopt);
  EXPECT_EQ(finds(*cache, 2), std::nullopt);
  EXPECT_EQ(finds(*cache, 1, 1000, "plan"), std::nullopt);
  ASSERT_EQ(files.warnings.size(), 1u);
  EXPECT_NE(files.warnings[0].find(first + "\"] is not an entry"), std::string::npos) << files.warnings[0];
  EXPECT_NE(files.warnings[0].find("under another name"), std::string::npos) << files.warnings[0];
  EXPECT_EQ(cache->counters().rejected, 3);
}

TEST(CompileCache, WarnsOfTheSameOnce) {
  CacheCase files;
  const auto cache = files.open();
  put_text(files.root(), "no folder");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(finds(*cache, i), std::nullopt);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(cache->store(numbered_key(i), numbered_payload(i)));
  EXPECT_EQ(files.warnings.size(), 1u);
  EXPECT_EQ(cache->counters().failures, 10);
}

TEST(CompileCache, DeletedWhileItIsUsedIsFilledAgain) {
  CacheCase files;
  const auto cache = files.open();
  ASSERT_TRUE(cache->store(numbered_key(1), numbered_payload(1)));
  const auto held = cache->find(numbered_key(1));
  std::filesystem::remove_all(files.root());
  const std::vector<std::byte> wanted = numbered_payload(1);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), held->payload().begin(), held->payload().end()));
  EXPECT_EQ(finds(*cache, 1), std::nullopt);
  EXPECT_TRUE(cache->store(numbered_key(1), numbered_payload(1)));
  EXPECT_EQ(finds(*cache, 1), true);
  EXPECT_TRUE(files.warnings.empty());
}

TEST(CompileCache, ReplacedWhileItIsUsedIsAMissOrTheOtherFolder) {
  CacheCase files;
  const auto cache = files.open();
  ASSERT_TRUE(cache->store(numbered_key(1), numbered_payload(1)));
  const std::string path = files.path_of(numbered_key(1));
  const auto expect_a_miss_with = [&](const std::string& reason) {
    files.warnings.clear();
    EXPECT_EQ(finds(*files.open(), 1), std::nullopt) << reason;
    ASSERT_EQ(files.warnings.size(), 1u) << reason;
    EXPECT_NE(files.warnings[0].find(reason), std::string::npos) << files.warnings[0];
  };
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  expect_a_miss_with("it is not a file");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_a_miss_with("it is not a file");
  std::filesystem::remove(path);
  std::filesystem::create_symlink(path, path);
  expect_a_miss_with("Too many levels of symbolic links");
  std::filesystem::remove_all(files.kind_folder());
  put_text(files.kind_folder(), "no folder");
  expect_a_miss_with("it is not a folder");

  const std::string moved = files.folder() / "moved";
  std::filesystem::remove(files.kind_folder());
  ASSERT_TRUE(cache->store(numbered_key(2), numbered_payload(2)));
  std::filesystem::rename(files.root(), moved);
  std::filesystem::create_directory_symlink(moved, files.root());
  EXPECT_EQ(finds(*cache, 2), true);
}

TEST(CompileCache, ExplainsAMissByTheNearestEntry) {
  CacheCase files;
  const auto cache = files.open();
  EXPECT_FALSE(cache->explain(numbered_key(1)));
  for (const int number : {1, 2}) ASSERT_TRUE(cache->store(numbered_key(number), numbered_payload(number)));
  const auto neighbour = cache->explain(CacheKey("rows", {{"emitter", "1"}, {"features", "avx512"}, {"graph", "2"}}));
  ASSERT_TRUE(neighbour);
  EXPECT_EQ(neighbour->hash, numbered_key(2).hash().hex());
  EXPECT_EQ(neighbour->equal_factors, 2u);
  EXPECT_EQ(neighbour->first_difference->factor, "features");
  EXPECT_EQ(neighbour->first_difference->wanted, "avx512");
  EXPECT_EQ(neighbour->first_difference->found, "avx2");
  EXPECT_FALSE(cache->explain(numbered_key(1))->first_difference);
  EXPECT_FALSE(cache->explain(numbered_key(1, "plan")));
}

TEST(CompileCache, ListsEntriesAndVerifiesEveryByte) {
  CacheCase files;
  const auto cache = files.open();
  for (const int number : {1, 2, 3}) ASSERT_TRUE(cache->store(numbered_key(number), numbered_payload(number)));
  ASSERT_TRUE(cache->store(numbered_key(4, "plan"), numbered_payload(4)));
  put_text(files.kind_folder() + "/notes.txt", "of somebody else");
  std::string damaged = file_text(files.path_of(numbered_key(2)));
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  put_text(files.path_of(numbered_key(2)), damaged);

  const std::vector<CacheListing> listed = cache->list();
  ASSERT_EQ(listed.size(), 4u);
  EXPECT_EQ(listed[0].kind, "plan");
  EXPECT_EQ(listed[0].factors, numbered_key(4).factors());
  for (const CacheListing& entry : listed) {
    EXPECT_EQ(entry.problem, "");  // the headers are whole
    EXPECT_EQ(entry.bytes, static_cast<std::int64_t>(std::filesystem::file_size(entry.path)));
  }
  int bad = 0;
  for (const CacheListing& entry : cache->list(CompileCache::Read::everything)) {
    if (entry.problem.empty()) continue;
    ++bad;
    EXPECT_EQ(entry.hash, numbered_key(2).hash().hex());
    EXPECT_NE(entry.problem.find("its payload is damaged"), std::string::npos);
  }
  EXPECT_EQ(bad, 1);
  put_text(files.path_of(numbered_key(3)), "");
  std::filesystem::rename(files.path_of(numbered_key(1)), files.kind_folder() + "/" + std::string(32, 'a') + ".weft");
  bad = 0;
  for (const CacheListing& entry : cache->list()) bad += entry.problem.empty() ? 0 : 1;
  EXPECT_EQ(bad, 2);
}

TEST(CompileCache, LiesInTheCacheFolder) {
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "XDG_CACHE_HOME") return "/x";
    return std::nullopt;
  };
  EXPECT_EQ(default_cache_root(environment), "/x/weft/compile");
  EXPECT_EQ(default_cache_root(environment, "/given"), "/given/compile");
  EXPECT_THROW(default_cache_root([](const std::string&) { return std::nullopt; }), UserError);
}

}  // namespace weft::compile_cache_test
