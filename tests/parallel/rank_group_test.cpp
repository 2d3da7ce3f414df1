#include "parallel/rank_group.h"

#include <array>
#include <atomic>

#include <gtest/gtest.h>

#include "tests/thrown_message.h"

namespace weft::rank_group_test {

const std::vector<std::string> kGroup = {"tp"};

std::span<const std::byte> bytes_of(const int& number) { return std::as_bytes(std::span(&number, 1)); }
int number_in(std::span<const std::byte> bytes) { return *reinterpret_cast<const int*>(bytes.data()); }

TEST(RankThreads, EachReadsWhatAllBringMeetingAfterMeeting) {
  constexpr int kMeetings = 200;
  for (const int ranks : {1, 2, 4}) {
    std::vector<RankTraffic> traffic(static_cast<std::size_t>(ranks));
    run_ranks(ranks, kGroup, [&](int rank, const RankGroups& groups) {
      RankGroup& group = groups.at("tp", ranks, "test");
      ASSERT_EQ(group.rank(), rank);
      ASSERT_EQ(group.size(), ranks);
      for (int meeting = 0; meeting < kMeetings; ++meeting) {
        int own = 1000 * meeting + rank;
        group.meet("numbers", bytes_of(own), [&](RankGroup::Memories all) {
          for (int other = 0; other < ranks; ++other)
            EXPECT_EQ(number_in(all[static_cast<std::size_t>(other)]), 1000 * meeting + other);
          return std::int64_t{4} * (ranks - 1);
        });
        own = -1;  // no rank reads it any more
      }
      traffic[static_cast<std::size_t>(rank)] = group.traffic();
    });
    for (const RankTraffic& one : traffic) {
      EXPECT_EQ(one.meetings, kMeetings);
      EXPECT_EQ(one.bytes, std::int64_t{4} * (ranks - 1) * kMeetings);
    }
  }
}

TEST(RankThreads, OneThatFailsLetsTheOthersGoAndIsWhatIsTold) {
  for (int failing = 0; failing < 3; ++failing) {
    std::array<std::string, 3> told;
    const std::string message = message_of<Error>([&] {
      run_ranks(3, kGroup, [&](int rank, const RankGroups& groups) {
        if (rank == failing) fail_user("[weights] are not there");
        const int own = 0;
        told[static_cast<std::size_t>(rank)] = message_of<Error>([&] {
          groups.at("tp", 3, "test").meet("numbers", bytes_of(own), [](RankGroup::Memories) -> std::int64_t {
            ADD_FAILURE() << "not all were there";
            return 0;
          });
        });
      });
    });
    EXPECT_EQ(message, "[weights] are not there");
    for (int rank = 0; rank < 3; ++rank)
      if (rank != failing) {
        EXPECT_EQ(told[static_cast<std::size_t>(rank)],
                  "[group tp] rank " + std::to_string(failing) + " failed: [weights] are not there");
      }
  }
}

TEST(RankThreads, OneThatEndsEarlyIsNotWaitedFor) {
  EXPECT_EQ(message_of<Error>([] {
              run_ranks(2, kGroup, [](int rank, const RankGroups& groups) {
                const int own = 0;
                if (rank == 1)
                  groups.at("tp", 2, "test").meet("numbers", bytes_of(own), [](RankGroup::Memories) {
                    return std::int64_t{0};
                  });
              });
            }),
            "[group tp] rank 0 has ended");
}

// The others still read its memory, which is freed when this rank leaves.
TEST(RankThreads, OneThatFailsWhileItReadsStaysUntilAllHaveRead) {
  std::atomic<int> sum = 0;
  const std::string message = message_of<Error>([&] {
    run_ranks(4, kGroup, [&](int rank, const RankGroups& groups) {
      const std::vector<int> own(1000, rank);
      groups.at("tp", 4, "test").meet("numbers", std::as_bytes(std::span(own)), [&](RankGroup::Memories all) {
        if (rank == 2) fail_user("[rank 2] cannot read");
        for (const auto& memory : all) sum += number_in(memory.last(sizeof(int)));
        return std::int64_t{0};
      });
    });
  });
  EXPECT_EQ(message, "[rank 2] cannot read");
  EXPECT_EQ(sum.load(), 3 * (0 + 1 + 2 + 3));
}

TEST(RankThreads, WhatRanksRunMustBeTheSame) {
  std::array<std::string, 2> told;
  run_ranks(2, kGroup, [&](int rank, const RankGroups& groups) {
    const int own = 0;
    told[static_cast<std::size_t>(rank)] = message_of<Error>([&] {
      groups.at("tp", 2, "test").meet(rank == 0 ? "all_reduce" : "all_gather", bytes_of(own), [](RankGroup::Memories) {
        return std::int64_t{0};
      });
    });
  });
  for (const std::string& text : told) EXPECT_EQ(text, "[group tp] rank 0 runs all_reduce, but rank 1 runs all_gather");
}

TEST(RankThreads, AGroupIsFoundByNameAndSize) {
  EXPECT_EQ(message_of<Error>([] { RankGroups().at("tp", 2, "all_reduce"); }),
            "[all_reduce] wanted the 2 ranks of group tp, but this process is in no such group");
  const std::vector<std::string> names = {"dp", "tp"};
  run_ranks(2, names, [](int, const RankGroups& groups) {
    EXPECT_EQ(groups.all().size(), 2u);
    EXPECT_EQ(groups.at("dp", 2, "all_reduce").name(), "dp");
    EXPECT_EQ(message_of<Error>([&] { groups.at("tp", 4, "all_reduce"); }),
              "[all_reduce] world_size must be the 2 ranks of group tp, but is 4");
  });
}

}  // namespace weft::rank_group_test
