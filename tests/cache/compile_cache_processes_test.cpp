// Several processes on one compile cache, and processes that end in the middle of what they do.

#include <chrono>
#include <csignal>
#include <functional>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/compile_cache.h"
#include "tests/cache/cache_case.h"

namespace weft::compile_cache_processes_test {

// Its exit status reports whether `body` succeeded.
pid_t start_process(const std::function<bool()>& body) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(body() ? 0 : 1);
  return process;
}

int wait_for(pid_t process) {
  int status = -1;
  ::waitpid(process, &status, 0);
  return status;
}

TEST(CompileCacheProcesses, EightOnOneFolderFindOnlyWhatIsRight) {
  CacheCase files;
  constexpr int kKeys = 12, kRounds = 10;
  std::vector<pid_t> processes;
  for (int process = 0; process < 8; ++process) {
    processes.push_back(start_process([&files, process] {
      const auto cache = files.open(host_file_system());
      for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kKeys; ++i) {
          const int number = (i * 5 + process) % kKeys;
          const std::optional<bool> found = finds(*cache, number, 20'000);
          if (found == false) return false;
          if (!found || round % 3 == 0) cache->store(numbered_key(number), numbered_payload(number, 20'000));
        }
      }
      return cache->counters().rejected == 0 && cache->counters().failures == 0 && files.warnings.empty();
    }));
  }
  for (const pid_t process : processes) EXPECT_EQ(wait_for(process), 0);
  EXPECT_EQ(files.files(), static_cast<std::size_t>(kKeys));
  const auto cache = files.open(host_file_system());
  for (int number = 0; number < kKeys; ++number) EXPECT_EQ(finds(*cache, number, 20'000), true);
}

TEST(CompileCacheProcesses, EightThatPassTheLimitAllTheTimeFindOnlyWhatIsRight) {
  CacheCase files;
  constexpr int kKeys = 20;
  std::vector<pid_t> processes;
  for (int process = 0; process < 8; ++process) {
    processes.push_back(start_process([&files, process] {
      const auto cache = files.open(host_file_system(), 50'000);
      for (int i = 0; i < 100; ++i) {
        const int number = (i * 7 + process) % kKeys;
        const std::optional<bool> found = finds(*cache, number, 9'000);
        if (found == false) return false;
        if (!found) cache->store(numbered_key(number), numbered_payload(number, 9'000));
      }
      return cache->counters().rejected == 0;
    }));
  }
  for (const pid_t process : processes) EXPECT_EQ(wait_for(process), 0);
  EXPECT_LE(files.files(), static_cast<std::size_t>(kKeys));
  files.open()->prune(50'000);
  EXPECT_LE(files.files(), 5u);
  EXPECT_GE(files.files(), 1u);
}

TEST(CompileCacheProcesses, KilledAtFiftyMomentsOfAWriteLeavesAUsableFolder) {
  CacheCase files;
  constexpr std::size_t kBytes = 3'000'000;
  const std::vector<std::byte> payloads[] = {numbered_payload(0, kBytes), numbered_payload(1, kBytes)};
  std::mt19937 random(11);
  int killed = 0, left_behind = 0;
  for (int moment = 0; moment < 50; ++moment) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t process = start_process([&] {
      const auto cache = files.open(host_file_system());
      (void)!::write(ready[1], "x", 1);
      for (int i = 0;; ++i) cache->store(numbered_key(i % 2), payloads[i % 2]);
      return true;
    });
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 15'000));
    ::kill(process, SIGKILL);
    const int status = wait_for(process);
    killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    ::close(ready[0]);
    ::close(ready[1]);

    const auto cache = files.open(host_file_system());
    for (const int number : {0, 1}) EXPECT_NE(finds(*cache, number, kBytes), false);
    EXPECT_EQ(cache->counters().rejected, 0) << moment;
    EXPECT_TRUE(cache->store(numbered_key(2), numbered_payload(2)));
    EXPECT_EQ(finds(*cache, 2), true);
    left_behind += cache->prune(0).temporary_files > 0;
    EXPECT_EQ(files.files(), 0u);
  }
  EXPECT_EQ(killed, 50);
  EXPECT_GT(left_behind, 0);  // some were really in the middle of a write
  EXPECT_TRUE(files.warnings.empty());
}

}  // namespace weft::compile_cache_processes_test
