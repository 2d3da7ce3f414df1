#include "parallel/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::thread_pool_test {

TEST(ThreadPool, RunsEveryChunkExactlyOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (std::int64_t chunks : {0, 1, 2, 3, 7, 8, 9, 100, 1001}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(chunks));
      pool.run(chunks, [&](std::int64_t chunk, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++times[static_cast<std::size_t>(chunk)];
      });
      for (const auto& count : times) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, WritesOfChunksAreSeenByTheCallerAndByTheNextRun) {
  ThreadPool pool(4);
  std::vector<std::int64_t> values(64, 0);
  for (int round = 0; round < 2000; ++round) {
    pool.run(64, [&](std::int64_t chunk, int) { values[static_cast<std::size_t>(chunk)] += chunk; });
    pool.run(8, [&](std::int64_t chunk, int) {
      for (std::int64_t i = chunk * 8; i < chunk * 8 + 8; ++i) values[static_cast<std::size_t>(i)] += 1;
    });
  }
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], 2000 * (i + 1));
}

TEST(ThreadPool, LateWorkersNeverTakeChunksOfAnotherRun) {
  ThreadPool pool(4);
  // Runs of changing lengths and bodies on the stack; a chunk taken for the wrong run would be out of its range.
  for (std::int64_t round = 0; round < 20000; ++round) {
    const std::int64_t chunks = 2 + round % 13;
    std::atomic<std::int64_t> sum{0};
    std::atomic<bool> outside{false};
    pool.run(chunks, [&, round](std::int64_t chunk, int) {
      if (chunk < 0 || chunk >= chunks) outside = true;
      sum += chunk + round;
    });
    ASSERT_FALSE(outside);
    ASSERT_EQ(sum.load(), chunks * (chunks - 1) / 2 + chunks * round);
  }
}

TEST(ThreadPool, OneThreadNumberIsNeverUsedByTwoChunksAtOnce) {
  ThreadPool pool(3);
  std::vector<std::int64_t> per_thread(3, 0);
  for (int round = 0; round < 500; ++round) {
    pool.run(30, [&](std::int64_t, int thread) { ++per_thread[static_cast<std::size_t>(thread)]; });
  }
  EXPECT_EQ(std::accumulate(per_thread.begin(), per_thread.end(), std::int64_t{0}), 500 * 30);
}

TEST(ThreadPool, AllThatAHeldUpThreadHasNotTakenIsFinishedByOthers) {
  ThreadPool pool(2);
  // Only one thread gets the blocking chunk, together with the other chunks that it took from its share of 32, a
  // quarter; the other thread must take all the rest, from both shares.
  constexpr int kTaken = 8;
  std::atomic<int> others{0};
  pool.run(64, [&](std::int64_t chunk, int) {
    if (chunk == 0) {
      while (others.load() < 64 - kTaken) std::this_thread::yield();
    } else {
      ++others;
    }
  });
  EXPECT_EQ(others.load(), 63);
}

TEST(ThreadPool, TheLastChunksOfAShareAreTakenOneByOne) {
  ThreadPool pool(2);
  // Chunk 28 is one of the last four of its share, with which nothing else is taken: others finish all the rest.
  std::atomic<int> others{0};
  pool.run(64, [&](std::int64_t chunk, int) {
    if (chunk == 28) {
      while (others.load() < 63) std::this_thread::yield();
    } else {
      ++others;
    }
  });
  EXPECT_EQ(others.load(), 63);
}

TEST(ThreadPool, EveryThreadWalksItsShareInOrder) {
  ThreadPool pool(4);
  std::vector<std::vector<std::int64_t>> seen(4);
  pool.run(4000, [&](std::int64_t chunk, int thread) { seen[static_cast<std::size_t>(thread)].push_back(chunk); });
  for (const auto& chunks : seen) {
    // Own share and then the next ones, wrapping once: the order falls at most once.
    int falls = 0;
    for (std::size_t i = 1; i < chunks.size(); ++i) falls += chunks[i] < chunks[i - 1];
    EXPECT_LE(falls, 1);
  }
}

TEST(ThreadPool, ExceptionOfTheLowestChunkReachesTheCallerAfterAllChunks) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> ran{0};
    EXPECT_EQ(message_of([&] {
                pool.run(40, [&](std::int64_t chunk, int) {
                  ++ran;
                  if (chunk % 10 == 7) fail_user("[chunk] {} failed", chunk);
                });
              }),
              "[chunk] 7 failed");
    EXPECT_EQ(ran.load(), 40);
  }
  std::atomic<int> ran{0};
  pool.run(10, [&](std::int64_t, int) { ++ran; });
  EXPECT_EQ(ran.load(), 10);
}

TEST(ThreadPool, ExceptionWithoutWorkersIsTheSame) {
  ThreadPool pool(1);
  int ran = 0;
  EXPECT_EQ(message_of([&] {
              pool.run(5, [&](std::int64_t chunk, int) {
                ++ran;
                if (chunk >= 2) fail_user("[chunk] {} failed", chunk);
              });
            }),
            "[chunk] 2 failed");
  EXPECT_EQ(ran, 5);
}

TEST(ThreadPool, NestedRunStaysOnTheCallingThread) {
  ThreadPool pool(3);
  std::atomic<int> inner_chunks{0};
  std::atomic<int> elsewhere{0};
  pool.run(24, [&](std::int64_t, int outer) {
    const auto self = std::this_thread::get_id();
    pool.run(5, [&](std::int64_t, int inner) {
      ++inner_chunks;
      if (inner != outer || std::this_thread::get_id() != self) ++elsewhere;
    });
  });
  EXPECT_EQ(inner_chunks.load(), 24 * 5);
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST(ThreadPool, NestedThroughAnotherPoolStaysOnTheCallingThread) {
  ThreadPool outer(2);
  ThreadPool inner(2);
  int chunks = 0;
  // One outer chunk, so that `inner` has one caller; a call back into `outer` from its thread 0 runs inline.
  outer.run(1, [&](std::int64_t, int) {
    inner.run(1, [&](std::int64_t, int) { outer.run(3, [&](std::int64_t, int) { ++chunks; }); });
  });
  EXPECT_EQ(chunks, 3);
}

TEST(ThreadPool, SecondCallerIsRefused) {
  ThreadPool pool(2);
  std::atomic<int> refused{0};
  pool.run(1, [&](std::int64_t, int) {
    std::thread([&] {
      try {
        pool.run(4, [](std::int64_t, int) {});
      } catch (const InternalError&) {
        ++refused;
      }
    }).join();
  });
  EXPECT_EQ(refused.load(), 1);
  pool.run(4, [&](std::int64_t, int) { ++refused; });
  EXPECT_EQ(refused.load(), 5);
}

TEST(ThreadPool, RefusesNegativeCounts) {
  EXPECT_THROW(ThreadPool(0), InternalError);
  EXPECT_THROW(ThreadPool(-3), InternalError);
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(-1, [](std::int64_t, int) {}), InternalError);
}

TEST(ThreadPool, WakesAfterItsWorkersWentToSleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // Both chunks wait for each other, so a worker that stays asleep would hang the test.
    std::atomic<int> arrived{0};
    pool.run(2, [&](std::int64_t, int) {
      ++arrived;
      while (arrived.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived.load(), 2);
  }
}

TEST(ThreadPool, AddsUpWhatSharedRunsTook) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    RunTimes times;
    pool.measure(&times);
    pool.run(1, [&](std::int64_t, int) {});
    EXPECT_EQ(times.runs, 0);
    std::atomic<std::int64_t> chunks{0};
    for (int round = 0; round < 3; ++round)
      pool.run(5, [&](std::int64_t, int) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        pool.run(2, [&](std::int64_t, int) { ++chunks; });  // in a chunk: it is no separate run
      });
    EXPECT_EQ(chunks, 30);
    EXPECT_EQ(times.runs, threads == 1 ? 0 : 3);
    if (threads == 1) continue;
    EXPECT_GE(times.busy, std::chrono::milliseconds(15));
    EXPECT_LE(times.busy, times.wall * threads);
  }
}

TEST(ThreadPool, AddsNothingForAFailedRunNorAfterItIsTold) {
  ThreadPool pool(2);
  RunTimes times;
  pool.measure(&times);
  const auto fail = [](std::int64_t chunk, int) { CHECK(chunk != 3, "chunk {}", chunk); };
  EXPECT_EQ(message_of<InternalError>([&] { pool.run(8, fail); }).find("chunk 3") != std::string::npos, true);
  EXPECT_EQ(times.runs, 0);
  EXPECT_EQ(times.busy.count(), 0);
  pool.run(8, [](std::int64_t, int) {});
  EXPECT_EQ(times.runs, 1);
  pool.measure(nullptr);
  pool.run(8, [](std::int64_t, int) {});
  EXPECT_EQ(times.runs, 1);
}

TEST(ThreadPool, CanBeMadeAndDroppedWithoutARun) {
  for (int round = 0; round < 50; ++round) ThreadPool pool(1 + round % 5);
}

}  // namespace weft::thread_pool_test
