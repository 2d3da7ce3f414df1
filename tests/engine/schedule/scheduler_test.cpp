#include "engine/schedule/scheduler.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tests/engine/schedule/fake_engine.h"

namespace weft::scheduler_test {

TEST(Scheduler, RunsRunningSequencesFirstAndCutsPromptsToTheBudget) {
  FakeEngine engine({.rows = 8, .sequences = 4, .block = 4, .longest = 64}, 32);
  engine.add(prompt_of(5), 3);
  engine.add(prompt_of(9, 100), 2);
  EXPECT_EQ(engine.step(), (Rows{{0, 5}, {1, 3}}));
  engine.add(prompt_of(2, 200), 1);
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 6}, {2, 1}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_TRUE(engine.is_idle());
}

TEST(Scheduler, ALongPromptTakesFewRowsWhileThereAreOthers) {
  FakeEngine engine({.rows = 16, .sequences = 4, .block = 4, .longest = 64, .long_prefill_threshold = 3}, 32);
  engine.add(prompt_of(20), 1);
  EXPECT_EQ(engine.step(), (Rows{{0, 16}}));
  engine.add(prompt_of(7, 100), 2);
  EXPECT_EQ(engine.step(), (Rows{{0, 3}, {1, 3}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 3}}));
  EXPECT_EQ(engine.step(), (Rows{{1, 1}}));
}

// Beside two sequences that decode, prompts have room for three rows (PromptPace::kMostRatio), once times are known.
TEST(Scheduler, PacedPromptsShareWhatAStepHasForThem) {
  FakeEngine engine({.rows = 64, .sequences = 8, .block = 4, .longest = 512}, 1024);
  engine.scheduler().pace_prompts();
  engine.add(prompt_of(50), 200);
  engine.add(prompt_of(2, 100), 200);
  EXPECT_EQ(engine.step(), (Rows{{0, 50}, {1, 2}})) << "nothing decodes yet";
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}}));
  engine.add(prompt_of(100, 200), 1);
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}, {2, 16}})) << "PromptPace::kFirstRows";
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}, {2, 3}}));
  engine.add(prompt_of(3, 400), 1);
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}, {2, 1}, {3, 2}})) << "a short prompt does not wait for the long one";
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}, {2, 3}}));
}

TEST(Scheduler, ManyShortPromptsDoNotWaitForTheFewThatDecode) {
  FakeEngine engine({.rows = 16, .sequences = 8, .block = 4, .longest = 64}, 1024);
  engine.scheduler().pace_prompts();
  engine.add(prompt_of(2), 20);
  engine.step();
  for (int i = 1; i < 5; ++i) engine.add(prompt_of(7, 100 * i), 20);
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 7}, {2, 7}, {3, 1}})) << "four wait, one decodes";
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}, {2, 1}})) << "two wait, three decode";
}

TEST(Scheduler, PromptsLongerThanAStepArePacedEvenIfTheyAreMany) {
  FakeEngine engine({.rows = 16, .sequences = 8, .block = 4, .longest = 64}, 1024);
  engine.scheduler().pace_prompts();
  engine.add(prompt_of(2), 20);
  engine.step();
  for (int i = 1; i < 5; ++i) engine.add(prompt_of(17, 100 * i), 20);
  EXPECT_EQ(engine.step(), (Rows{{0, 1}})) << "decoding is measured first";
}

// The last sequence is the one that decodes, and gives up its pages for itself; the prompt, for which the step has no
// room then, must go on.
TEST(Scheduler, APacedStepIsNeverEmpty) {
  FakeEngine engine({.rows = 16, .sequences = 2, .block = 2, .longest = 64, .long_prefill_threshold = 2}, 31);
  engine.scheduler().pace_prompts();
  engine.add(prompt_of(60), 1);
  engine.add(prompt_of(2, 100), 8);
  EXPECT_EQ(engine.step(), (Rows{{0, 2}, {1, 2}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 2}})) << "sequence 1 has no page for its token, and decoding was not measured yet";
  for (int step = 0; step < 100 && !engine.is_idle(); ++step) EXPECT_FALSE(engine.step().empty());
  EXPECT_TRUE(engine.is_idle());
  EXPECT_GT(engine.statistics().preemptions, 0);
}

TEST(Scheduler, NeverRunsMoreSequencesThanAStepHas) {
  FakeEngine engine({.rows = 16, .sequences = 2, .block = 4, .longest = 64}, 32);
  for (int i = 0; i < 4; ++i) engine.add(prompt_of(2, 10 * i), 2);
  EXPECT_EQ(engine.step(), (Rows{{0, 2}, {1, 2}}));
  EXPECT_EQ(engine.statistics().waiting, 2);
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}}));
  EXPECT_EQ(engine.step(), (Rows{{2, 2}, {3, 2}}));
}

// A prompt is admitted only if the pages of all its tokens are free, and the next ones do not overtake it.
TEST(Scheduler, AdmitsWholePromptsInOrder) {
  FakeEngine engine({.rows = 8, .sequences = 4, .block = 4, .longest = 64}, 10);
  engine.add(prompt_of(20), 3);       // 5 pages, and 6 with its answer
  engine.add(prompt_of(24, 100), 1);  // 6 pages
  engine.add(prompt_of(1, 200), 1);   // 1 page
  EXPECT_EQ(engine.step(), (Rows{{0, 8}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 8}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 4}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 1}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 1}}));
  EXPECT_EQ(engine.step(), (Rows{{1, 8}}));
  EXPECT_EQ(engine.step(), (Rows{{1, 8}}));
  EXPECT_EQ(engine.step(), (Rows{{1, 8}}));
  EXPECT_EQ(engine.step(), (Rows{{2, 1}}));
}

TEST(Scheduler, PreemptsTheLastOfTheRunningAndPutsItInFrontOfTheWaiting) {
  FakeEngine engine({.rows = 16, .sequences = 3, .block = 2, .longest = 16}, 6);
  for (int i = 0; i < 3; ++i) engine.add(prompt_of(4, 10 * i), 8);  // 2 pages each
  engine.add(prompt_of(1, 90), 1);
  EXPECT_EQ(engine.step(), (Rows{{0, 4}, {1, 4}, {2, 4}}));
  // The first takes a page of the third, and the second the other one. Nothing is admitted in such a step.
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 1}}));
  EXPECT_EQ(engine.sequence(2).preemptions, 1);
  EXPECT_EQ(engine.sequence(2).computed, 0);
  EXPECT_EQ(engine.statistics().preemptions, 1);
  EXPECT_EQ(engine.statistics().waiting, 2);
  std::vector<int> order;
  while (!engine.is_idle())
    for (const auto& [number, rows] : engine.step())
      if (number >= 2 && (order.empty() || order.back() != number)) order.push_back(number);
  EXPECT_EQ(order.front(), 2) << "the one that had begun goes first";
}

TEST(Scheduler, APreemptedSequenceFindsItsOwnPages) {
  FakeEngine engine({.rows = 16, .sequences = 2, .block = 2, .longest = 16, .caches_prefixes = true}, 7);
  engine.add(prompt_of(4), 8);
  engine.add(prompt_of(6, 10), 8);
  engine.step();
  while (engine.sequence(1).preemptions == 0) ASSERT_FALSE(engine.step().empty());
  while (engine.has(0)) engine.step();
  const std::int64_t tokens = engine.sequence(1).token_count();
  EXPECT_EQ(engine.step(), (Rows{{1, tokens - 2}})) << "the other sequence took three of its four pages, from the end";
  EXPECT_EQ(engine.statistics().prefix_cache_queries, 10) << "each prompt once";
}

TEST(Scheduler, ByPriorityTheSmallestNumberGoesFirstAndTheGreatestGivesUpItsPages) {
  FakeEngine engine({.rows = 16, .sequences = 2, .block = 2, .longest = 16, .has_priorities = true}, 5);
  engine.add(prompt_of(2), 4, 5);
  engine.add(prompt_of(2, 10), 4, 0);
  engine.add(prompt_of(2, 20), 4, -1);
  engine.add(prompt_of(2, 30), 4, 0);
  EXPECT_EQ(engine.step(), (Rows{{2, 2}, {1, 2}}));
  // Numbers 2 and 1 hold 4 pages at their ends; number 3 follows number 1, and 0 is the last.
  std::vector<int> ended;
  std::set<int> open{0, 1, 2, 3};
  while (!engine.is_idle()) {
    engine.step();
    for (auto at = open.begin(); at != open.end();) {
      if (!engine.has(*at)) {
        ended.push_back(*at);
        at = open.erase(at);
      } else {
        ++at;
      }
    }
  }
  EXPECT_EQ(std::set<int>(ended.begin(), ended.begin() + 2), (std::set<int>{1, 2}));
  EXPECT_EQ(std::vector<int>(ended.begin() + 2, ended.end()), (std::vector<int>{3, 0}));
}

// The victim may come earlier in the step than the sequence that needs its page: then it has no rows in the step.
TEST(Scheduler, AVictimByPriorityLeavesTheStep) {
  FakeEngine engine({.rows = 16, .sequences = 2, .block = 2, .longest = 16, .has_priorities = true}, 3);
  engine.add(prompt_of(1), 5, 9);
  EXPECT_EQ(engine.step(), (Rows{{0, 1}}));
  engine.add(prompt_of(4, 10), 3, 0);
  EXPECT_EQ(engine.step(), (Rows{{0, 1}, {1, 4}})) << "3 pages in use";
  EXPECT_EQ(engine.step(), (Rows{{1, 1}})) << "the first needs a page, and is the victim itself";
  EXPECT_EQ(engine.sequence(0).preemptions, 1);
}

TEST(Scheduler, FindsFullBlocksAndComputesAtLeastTheLastToken) {
  FakeEngine engine({.rows = 64, .sequences = 4, .block = 4, .longest = 64, .caches_prefixes = true}, 32);
  engine.add(prompt_of(10), 3);
  while (!engine.is_idle()) engine.step();
  EXPECT_EQ(engine.statistics().pages_used, 0);
  // The answer is 10, 11, 12, of which the last is not computed: blocks 0 to 2 are found.
  engine.add(prompt_of(13), 1);
  EXPECT_EQ(engine.step(), (Rows{{1, 1}}));
  engine.add(prompt_of(12), 1);
  EXPECT_EQ(engine.step(), (Rows{{2, 4}})) << "a prompt of found blocks computes its last block again";
  engine.add(prompt_of(4), 1);
  EXPECT_EQ(engine.step(), (Rows{{3, 4}}));
  const EngineStatistics counts = engine.statistics();
  EXPECT_EQ(counts.prefix_cache_queries, 10 + 13 + 12 + 4);
  EXPECT_EQ(counts.prefix_cache_hits, 12 + 8);
}

TEST(Scheduler, ASequenceThatReadsNoCacheLeavesItsBlocks) {
  FakeEngine engine({.rows = 64, .sequences = 4, .block = 4, .longest = 64, .caches_prefixes = true}, 32);
  for (int i = 0; i < 2; ++i) {
    engine.sequence(engine.add(prompt_of(9), 1)).first_logit_row = 0;
    EXPECT_EQ(engine.step(), (Rows{{i, 9}}));
  }
  engine.add(prompt_of(9), 1);
  EXPECT_EQ(engine.step(), (Rows{{2, 1}}));
  EXPECT_EQ(engine.statistics().prefix_cache_queries, 9);
}

// Of sequences with one prompt that come together the first computes it, and the others compute what is not in full
// blocks. One with other tokens waits for none of them.
TEST(Scheduler, SequencesOfOneStepComputeASharedPrefixOnce) {
  FakeEngine engine({.rows = 16, .sequences = 8, .block = 4, .longest = 64, .caches_prefixes = true}, 64);
  for (int i = 0; i < 3; ++i) engine.add(prompt_of(22), 1);
  engine.add(prompt_of(3, 100), 2);
  EXPECT_EQ(engine.step(), (Rows{{0, 16}}));
  EXPECT_EQ(engine.step(), (Rows{{0, 6}, {3, 3}}));
  EXPECT_EQ(engine.statistics().deferred, 2);
  EXPECT_EQ(engine.step(), (Rows{{3, 1}, {1, 2}, {2, 2}}));
  EXPECT_EQ(engine.statistics().prefix_cache_hits, 40);
  // With a salt they share nothing.
  engine.add(prompt_of(22), 1);
  engine.sequence(4).cache_salt = "a";
  EXPECT_EQ(engine.step(), (Rows{{4, 16}}));
}

TEST(Scheduler, WithPhasesAChunkEndsWithThePromptAndAnswersAreNotCached) {
  FakeEngine engine(
      {.rows = 16, .sequences = 2, .block = 2, .longest = 16, .caches_prefixes = true, .has_phases = true}, 16);
  engine.add(prompt_of(5), 5);
  for (int i = 0; i < 3; ++i) engine.step();
  engine.scheduler().restart();
  EXPECT_EQ(engine.step(), (Rows{{0, 5}})) << "the prompt alone, again";
  EXPECT_EQ(engine.step(), (Rows{{0, 3}})) << "the three generated tokens";
  while (!engine.is_idle()) engine.step();
  // The tokens of prompt and answer: two blocks of the prompt are found, and neither the one that has both nor others.
  engine.add(prompt_of(9), 1);
  EXPECT_EQ(engine.step(), (Rows{{1, 5}}));
}

TEST(Scheduler, RestartComputesEverythingAgain) {
  FakeEngine engine({.rows = 16, .sequences = 2, .block = 2, .longest = 16, .caches_prefixes = true}, 16);
  engine.add(prompt_of(5), 3);
  engine.add(prompt_of(5, 10), 3);
  engine.add(prompt_of(5, 20), 3);
  engine.step();
  EXPECT_FALSE(engine.scheduler().reset_prefix_cache()) << "pages are in use";
  engine.scheduler().restart();
  EXPECT_EQ(engine.statistics().pages_used, 0);
  EXPECT_EQ(engine.step(), (Rows{{0, 6}, {1, 6}}));
  EXPECT_EQ(engine.statistics().preemptions, 0);
}

// Requests of every kind come, are cancelled in every state, and end; a sequence gets the tokens that it gets alone,
// and at the end no page is in use.
TEST(Scheduler, LosesNoPageWhenSequencesAreCancelledInEveryState) {
  for (const bool has_priorities : {false, true})
    for (const bool is_paced : {false, true}) {
      const bool has_phases = has_priorities != is_paced;
      std::mt19937 random(3);
      const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
      FakeEngine engine({.rows = 12,
                         .sequences = 5,
                         .block = 2,
                         .longest = 24,
                         .long_prefill_threshold = is_paced ? 0 : 5,
                         .has_priorities = has_priorities,
                         .caches_prefixes = true,
                         .has_phases = has_phases},
                        17);
      if (is_paced) engine.scheduler().pace_prompts();
      std::set<int> open;
      for (int step = 0; step < 20'000; ++step) {
        if (below(3) == 0 && open.size() < 12)
          open.insert(engine.add(prompt_of(1 + below(14), 4 * below(3)), 1 + below(10), below(3)));
        if (below(10) == 0 && !open.empty()) {
          const auto cancelled = std::next(open.begin(), below(static_cast<int>(open.size())));
          engine.remove(*cancelled);
          open.erase(cancelled);
        }
        std::int64_t rows = 0;
        const Rows ran = engine.step();
        for (const auto& [number, count] : ran) {
          EXPECT_GT(count, 0);
          rows += count;
        }
        EXPECT_LE(rows, 12);
        EXPECT_LE(ran.size(), 5U);
        EXPECT_EQ(ran.empty(), open.empty());
        std::erase_if(open, [&](int number) { return !engine.has(number); });
      }
      EXPECT_GT(engine.statistics().preemptions, 100);
      EXPECT_GT(engine.statistics().prefix_cache_hits, 1000);
      while (!engine.is_idle()) engine.step();
      EXPECT_EQ(engine.statistics().pages_used, 0);
      EXPECT_TRUE(engine.scheduler().reset_prefix_cache());
    }
}

// Sequences whose tokens attend to later ones are computed in one step each, in the order in which they came.
TEST(Scheduler, KeepsWholePromptsTogether) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto number = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    const int longest = number(1, 40), block = number(1, 9);
    const std::int64_t pages = (longest + block - 1) / block + number(0, 9);
    FakeEngine engine({.rows = longest + number(0, 20),
                       .sequences = number(1, 6),
                       .block = block,
                       .longest = longest,
                       .long_prefill_threshold = number(0, 1) * 3,
                       .has_whole_prompts = true},
                      pages);
    if (number(0, 1) == 1) engine.scheduler().pace_prompts();
    std::vector<std::int64_t> lengths;
    for (int i = 0; i < 12; ++i) {
      lengths.push_back(number(1, longest));
      engine.add(prompt_of(static_cast<int>(lengths.back()), i), 1);
    }
    std::vector<int> order;
    while (!engine.is_idle())
      for (const auto& [sequence, rows] : engine.step()) {
        EXPECT_EQ(rows, lengths[static_cast<std::size_t>(sequence)]);
        order.push_back(sequence);
      }
    EXPECT_EQ(order.size(), lengths.size());
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_EQ(engine.statistics().preemptions, 0);
  }
}

}  // namespace weft::scheduler_test
