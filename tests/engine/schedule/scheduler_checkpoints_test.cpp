// Checkpoints in the prefix cache. FakeEngine compares the content of all pages in each step.

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tests/engine/schedule/fake_engine.h"

namespace weft::scheduler_test {

TEST(SchedulerCheckpoints, ContinuesFromCheckpoints) {
  FakeEngine engine({.rows = 400, .sequences = 4, .block = 256, .longest = 1024, .caches_prefixes = true}, 16, true);
  engine.add(prompt_of(100), 90);
  EXPECT_EQ(engine.step(), (Rows{{0, 84}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 16}}));
  while (!engine.is_idle()) engine.step();
  EXPECT_EQ(engine.statistics().pages_used, 0);
  std::vector<int> prompt = prompt_of(84);
  prompt.resize(110, 7);
  engine.add(prompt, 1);
  EXPECT_EQ(engine.step(), (Rows{{1, 26}})) << "a checkpoint after ten more tokens is not worth a step";
  engine.add(prompt_of(300), 1);
  EXPECT_EQ(engine.step(), (Rows{{2, 300 - 189}})) << "the answer, whose last token is not computed";
  engine.add(prompt_of(83), 1);
  EXPECT_EQ(engine.step(), (Rows{{3, 67}})) << "fewer tokens than the checkpoint has";
  engine.add(prompt_of(84), 1);
  EXPECT_EQ(engine.step(), (Rows{{3, 16}, {4, 17}})) << "the checkpoint of 67 tokens, not that of all 84";
}

// The checkpoint of one is ready when the others begin.
TEST(SchedulerCheckpoints, SequencesOfOneStepComputeThePartBeforeACheckpointOnce) {
  FakeEngine engine({.rows = 400, .sequences = 4, .block = 256, .longest = 512, .caches_prefixes = true}, 16, true);
  for (int i = 0; i < 3; ++i) engine.add(prompt_of(200), 1);
  EXPECT_EQ(engine.step(), (Rows{{0, 184}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 16}, {1, 16}, {2, 16}}));
}

TEST(SchedulerCheckpoints, ACheckpointNeedsAFreePage) {
  FakeEngine engine({.rows = 400, .sequences = 1, .block = 256, .longest = 256, .caches_prefixes = true}, 1, true);
  engine.add(prompt_of(100), 1);
  EXPECT_EQ(engine.step(), (Rows{{0, 84}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 16}})) << "the only page becomes the checkpoint of its end";
  engine.add(prompt_of(120), 1);
  EXPECT_EQ(engine.step(), (Rows{{1, 104}})) << "it cannot be copied, and is taken";
}

// Conversations that branch and that are cancelled, with few pages. FakeEngine compares the content of all pages.
TEST(SchedulerCheckpoints, GoesOnFromTheRightContentWhereCheckpointsCompeteForPages) {
  std::mt19937 random(5);
  const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  FakeEngine engine({.rows = 150, .sequences = 5, .block = 96, .longest = 480, .caches_prefixes = true}, 9, true);
  std::set<int> open;
  for (int step = 0; step < 20'000; ++step) {
    if (below(3) == 0 && open.size() < 8) {
      std::vector<int> prompt = prompt_of(1 + below(240));
      for (int& token : prompt)
        if (below(300) == 0) token = -1;
      open.insert(engine.add(prompt, 1 + below(240)));
    }
    if (below(10) == 0 && !open.empty()) {
      const auto cancelled = std::next(open.begin(), below(static_cast<int>(open.size())));
      engine.remove(*cancelled);
      open.erase(cancelled);
    }
    EXPECT_EQ(engine.step().empty(), open.empty());
    std::erase_if(open, [&](int number) { return !engine.has(number); });
  }
  EXPECT_GT(engine.statistics().preemptions, 100);
  EXPECT_NE(engine.statistics().prefix_cache_hits % 96, 0) << "also parts of blocks";
  while (!engine.is_idle()) engine.step();
  EXPECT_EQ(engine.statistics().pages_used, 0);
  EXPECT_TRUE(engine.scheduler().reset_prefix_cache());
}

}  // namespace weft::scheduler_test
