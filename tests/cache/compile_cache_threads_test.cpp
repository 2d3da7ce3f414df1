#include <atomic>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "cache/compile_cache.h"
#include "tests/cache/cache_case.h"

namespace weft::compile_cache_threads_test {

TEST(CompileCacheThreads, ConcurrentUsersOfOneCacheFindOnlyWhatIsRight) {
  CacheCase files;
  std::mutex mutex;
  std::vector<std::string> warnings;
  CompileCache cache({.root = files.root(), .most_bytes = 12'000, .warn = [&](const std::string& warning) {
                        const std::lock_guard lock(mutex);
                        warnings.push_back(warning);
                      }});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 60; ++i) {
        const int number = (i * 7 + thread) % 16;
        const std::optional<bool> found = finds(cache, number);
        if (found == false) ++wrong;
        if (!found) cache.store(numbered_key(number), numbered_payload(number));
        if (i % 20 == 7) {
          const std::string damaged = files.folder() / std::to_string(thread);
          put_text(damaged, "damaged");
          std::error_code ignored;
          std::filesystem::rename(damaged, files.path_of(numbered_key(number)), ignored);
        }
        if (i % 20 == 9) cache.explain(numbered_key(number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const CacheCounters counters = cache.counters();
  EXPECT_EQ(counters.hits + counters.misses, 360);
  EXPECT_GT(counters.stores, 16);
}

}  // namespace weft::compile_cache_threads_test
