#include "runtime/replay_mode.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "options/options.h"
#include "tests/thrown_message.h"

namespace weft::replay_mode_test {

constexpr ReplayMode kAll[] = {ReplayMode::none, ReplayMode::piecewise, ReplayMode::full, ReplayMode::full_decode_only,
                               ReplayMode::full_and_piecewise};

TEST(ReplayMode, ReadsBackInEitherCase) {
  for (const ReplayMode mode : kAll) EXPECT_EQ(parse_replay_mode(replay_mode_text(mode)), mode);
  EXPECT_EQ(parse_replay_mode("full_And_piecewise"), ReplayMode::full_and_piecewise);
  EXPECT_NE(message_of([] { parse_replay_mode("FULL_DECODE"); }).find("did you mean \"FULL_DECODE_ONLY\"?"),
            std::string::npos);
}

TEST(ReplayMode, TakesEveryWordOfItsOption) {
  for (const ReplayMode mode : kAll) {
    Options options;
    set_option(options, "cc.cudagraph_mode", replay_mode_text(mode), "test");
    EXPECT_EQ(parse_replay_mode(options.cudagraph_mode), mode);
  }
}

TEST(ReplayMode, PairsTreatDecodeAndMixedBatchesDifferently) {
  for (const ReplayMode mode : {ReplayMode::none, ReplayMode::piecewise, ReplayMode::full}) {
    EXPECT_FALSE(is_pair(mode));
    EXPECT_EQ(decode_mode(mode), mode);
    EXPECT_EQ(mixed_mode(mode), mode);
    EXPECT_EQ(max_mode(mode), mode);
  }
  for (const ReplayMode mode : {ReplayMode::full_decode_only, ReplayMode::full_and_piecewise}) {
    EXPECT_TRUE(is_pair(mode));
    EXPECT_EQ(decode_mode(mode), ReplayMode::full);
    EXPECT_EQ(max_mode(mode), ReplayMode::full);
  }
  EXPECT_EQ(mixed_mode(ReplayMode::full_decode_only), ReplayMode::none);
  EXPECT_EQ(mixed_mode(ReplayMode::full_and_piecewise), ReplayMode::piecewise);
}

TEST(ReplayMode, SaysWhatItNeeds) {
  const bool full[] = {false, false, true, true, true}, piecewise[] = {false, true, false, false, true};
  for (const ReplayMode mode : kAll) {
    EXPECT_EQ(has_full(mode), full[static_cast<int>(mode)]) << replay_mode_text(mode);
    EXPECT_EQ(requires_piecewise(mode), piecewise[static_cast<int>(mode)]) << replay_mode_text(mode);
    EXPECT_FALSE(requires_piecewise(without_piecewise(mode))) << replay_mode_text(mode);
  }
  EXPECT_TRUE(has_mode(ReplayMode::full_decode_only, ReplayMode::none));
  EXPECT_FALSE(has_mode(ReplayMode::full_and_piecewise, ReplayMode::none));
  EXPECT_THROW(has_mode(ReplayMode::full, ReplayMode::full_and_piecewise), InternalError);
  EXPECT_EQ(without_piecewise(ReplayMode::piecewise), ReplayMode::none);
  EXPECT_EQ(without_piecewise(ReplayMode::full_and_piecewise), ReplayMode::full_decode_only);
  EXPECT_EQ(without_piecewise(ReplayMode::full), ReplayMode::full);
}

}  // namespace weft::replay_mode_test
