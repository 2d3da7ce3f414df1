// CUDA threads as ThreadSanitizer sees them: memory that bypasses the emulator's checks, ordered by barriers or not,
// and every kernel. In other builds only the results show that barriers wait.

#include <array>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/sample_call.h"
#include "emulator/emulator.h"
#include "kernels/cuda/device/memory.cuh"
#include "tests/cuda/cuda_context.h"
#include "tests/thrown_message.h"

namespace weft::emulated_threads_test {

using namespace cuda;

constexpr unsigned kThreads = 64, kRounds = 4;

// Memory that threads share and that the emulator does not check.
struct Shared {
  std::array<unsigned, 2 * kThreads> words = {};
};
Shared& shared_by(const void* arguments) { return **static_cast<Shared* const*>(arguments); }

void launch(void (*body)(const void*), Shared& shared, LaunchShape shape = {.threads = kThreads},
            ThreadOrder order = ThreadOrder::forward) {
  MemoryMap memory;
  const Shared* const arguments = &shared;
  Emulator({.order = order}).run({"kernel", body, 1024, sizeof arguments}, shape, &arguments, memory);
}

constexpr ThreadOrder kOrders[] = {ThreadOrder::forward, ThreadOrder::backward, ThreadOrder::random};

// In each round a thread takes the word of the next one. The two halves alternate, so one barrier for each round is
// enough.
template <unsigned halves>
void pass_around(const void* arguments) {
  auto& words = shared_by(arguments).words;
  const unsigned i = thread_index(), next = (i + 1) % kThreads;
  unsigned word = i;
  for (unsigned round = 0; round < kRounds; ++round) {
    const unsigned half = round % halves * kThreads;
    words[half + i] = word;
    wait_for_block();
    word = words[half + next];
  }
  wait_for_block();
  words[i] = word;
}

TEST(EmulatedThreads, AreOrderedByTheBlocksBarrier) {
  for (const ThreadOrder order : kOrders) {
    Shared shared;
    launch(pass_around<2>, shared, {.threads = kThreads}, order);
    for (unsigned i = 0; i < kThreads; ++i) EXPECT_EQ(shared.words[i], (i + kRounds) % kThreads);
  }
}

// Odd threads end before the barrier, which does not wait for them.
void leave_words_behind(const void* arguments) {
  auto& words = shared_by(arguments).words;
  const unsigned i = thread_index();
  words[i] = i;
  if (i % 2 == 1) return;
  wait_for_block();
  words[kThreads + i] = words[i + 1];
}

TEST(EmulatedThreads, ThatEndedLieBeforeTheNextBarrier) {
  // Forward a barrier is left by a thread that ends.
  for (const ThreadOrder order : kOrders) {
    Shared shared;
    launch(leave_words_behind, shared, {.threads = kThreads}, order);
    for (unsigned i = 0; i < kThreads; i += 2) EXPECT_EQ(shared.words[kThreads + i], i + 1);
  }
}

void exchange_in_warp(const void* arguments) {
  auto& words = shared_by(arguments).words;
  const unsigned i = thread_index();
  words[i] = i;
  wait_for_warp();
  const unsigned other = words[i ^ 1];
  wait_for_warp();
  words[i] = other;
}

TEST(EmulatedThreads, AreOrderedByAWarpsBarrier) {
  for (const ThreadOrder order : kOrders) {
    Shared shared;
    launch(exchange_in_warp, shared, {.threads = kThreads}, order);
    for (unsigned i = 0; i < kThreads; ++i) EXPECT_EQ(shared.words[i], i ^ 1);
  }
}

// More than functions that never ended would be taken by ThreadSanitizer.
TEST(EmulatedThreads, OfOneBlockLieBeforeThoseOfTheNext) {
  constexpr unsigned kBlocks = 20000;
  Shared shared;
  launch([](const void* arguments) { ++shared_by(arguments).words[0]; }, shared, {.blocks = kBlocks, .threads = 1});
  EXPECT_EQ(shared.words[0], kBlocks);
}

TEST(EmulatedThreads, LieBeforeWhatFollowsAFault) {
  Shared shared;
  const auto fault = [&] {
    return message_of<DeviceError>([&] {
      launch(
          [](const void* arguments) {
            shared_by(arguments).words[thread_index()] = 1;
            if (thread_index() == kThreads - 1) kernel_fault("fails", Site::current());
            wait_for_block();
          },
          shared);
    });
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(fault().find("thread 63 of block (0, 0) fails"), std::string::npos);
    for (unsigned& word : shared.words) word = 0;
  }
  launch(pass_around<2>, shared);
  EXPECT_EQ(shared.words[0], kRounds);
}

// The samples themselves are checked elsewhere, all of them.
TEST(EmulatedThreads, OfEveryKernelKeepWhatTheyShareInOrder) {
  const auto context = cuda_context();
  for (const std::string& provider : cuda_providers(*context)) {
    for (const std::string& op : ops_of_provider(*context, provider)) {
      SCOPED_TRACE(op + "@" + provider);
      bool is_taken = false;
      for (const SampleCall& call : sample_calls(context->ops.at(op))) {
        if (!supports_of_cuda(*context, op, call.operands, call.attributes, provider)) continue;
        EXPECT_NO_THROW(by_cuda(*context, op, call.operands, call.attributes, provider));
        is_taken = true;
        break;
      }
      EXPECT_TRUE(is_taken) << "none of the samples";
    }
  }
}

#if defined(__SANITIZE_THREAD__)
constexpr int kStatusOfReports = 66;  // unless TSAN_OPTIONS has another

[[noreturn]] void launch_and_exit(void (*body)(const void*), ThreadOrder order) {
  Shared shared;
  launch(body, shared, {.threads = kThreads}, order);
  std::exit(0);
}

void expect_race(void (*body)(const void*)) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward})
    EXPECT_EXIT(launch_and_exit(body, order), testing::ExitedWithCode(kStatusOfReports), "data race");
}

TEST(EmulatedThreads, RaceWithoutABarrier) {
  expect_race([](const void* arguments) {
    auto& words = shared_by(arguments).words;
    words[thread_index()] = 1;
    words[kThreads + thread_index()] = words[kThreads - 1 - thread_index()];
  });
}

// The word that a thread reads after the barrier is written again before the next one.
TEST(EmulatedThreads, RaceWhereEveryOtherBarrierIsMissing) { expect_race(pass_around<1>); }

// The emulator's own check of shared arrays does not distinguish this from a barrier of the whole warp.
TEST(EmulatedThreads, RaceWhereTheHalvesOfAWarpWaitEachByItself) {
  expect_race([](const void* arguments) {
    auto& words = shared_by(arguments).words;
    words[thread_index()] = 1;
    warp_barrier(thread_index() % 32 < 16 ? 0x0000ffffu : 0xffff0000u, Site::current());
    words[kThreads + thread_index()] = words[thread_index() ^ 16];
  });
}

TEST(EmulatedThreads, RaceWhereOnlyAShuffleLiesBetween) {
  expect_race([](const void* arguments) {
    auto& words = shared_by(arguments).words;
    words[thread_index()] = 1;
    exchange(1.0f, 1);
    words[kThreads + thread_index()] = words[thread_index() ^ 1];
  });
}
#endif

}  // namespace weft::emulated_threads_test
