#include "base/first_time_work.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::first_time_work_test {

TEST(FirstTimeWork, CountsBeforeAndAfterReady) {
  FirstTimeWork work;
  work.begin(FirstTime::capture, "a");
  work.set_ready(false);
  work.begin(FirstTime::capture, "b");
  work.begin(FirstTime::capture, "c");
  EXPECT_EQ(work.counts(FirstTime::capture).before_ready, 1);
  EXPECT_EQ(work.counts(FirstTime::capture).after_ready, 2);
  EXPECT_EQ(work.counts(FirstTime::compile).after_ready, 0);
  work.set_loading();
  EXPECT_FALSE(work.is_ready());
  work.begin(FirstTime::capture, "d");
  EXPECT_EQ(work.counts(FirstTime::capture).before_ready, 2);
}

TEST(FirstTimeWork, AddsUpWhatCameLate) {
  FirstTimeWork work;
  work.begin(FirstTime::capture, "a");
  work.took(FirstTime::capture, 4);
  EXPECT_EQ(work.counts(FirstTime::capture).milliseconds_after_ready, 0);
  work.set_ready(false);
  for (const double milliseconds : {1.5, 2.0}) work.took(FirstTime::capture, milliseconds);
  EXPECT_EQ(work.counts(FirstTime::capture).milliseconds_after_ready, 3.5);
  EXPECT_EQ(work.counts(FirstTime::tune).milliseconds_after_ready, 0);
}

TEST(FirstTimeWork, NamesWhatIsForbidden) {
  FirstTimeWork work;
  work.begin(FirstTime::load, "function f");
  work.set_ready(true);
  for (std::size_t i = 0; i < kFirstTimeKinds; ++i) {
    const auto kind = static_cast<FirstTime>(i);
    EXPECT_THROW(work.begin(kind, "function g"), InternalError);
    const std::string message = message_of<InternalError>([&] { work.begin(kind, "function g"); });
    EXPECT_NE(message.find(fmt::format("function g wants to {}", first_time_text(kind))), std::string::npos) << message;
    EXPECT_EQ(work.counts(kind).after_ready, 0);
  }
}

TEST(FirstTimeWork, CountsAndForbidsNothingOfAReport) {
  FirstTimeWork work;
  work.set_ready(true);
  {
    const FirstTimeWork::Uncounted report(work);
    work.begin(FirstTime::compile, "a");
  }
  EXPECT_EQ(work.counts(FirstTime::compile).after_ready, 0);
  EXPECT_THROW(work.begin(FirstTime::compile, "b"), InternalError);
}

TEST(FirstTimeScope, IsTheInnermostAndOfOneThread) {
  FirstTimeWork outer, inner;
  EXPECT_EQ(FirstTimeScope::work(), nullptr);
  {
    const FirstTimeScope of_outer(&outer);
    {
      const FirstTimeScope of_inner(&inner);
      EXPECT_EQ(FirstTimeScope::work(), &inner);
      const FirstTimeScope of_none(nullptr);
      EXPECT_EQ(FirstTimeScope::work(), nullptr);
    }
    EXPECT_EQ(FirstTimeScope::work(), &outer);
    std::thread([] { EXPECT_EQ(FirstTimeScope::work(), nullptr); }).join();
  }
  EXPECT_EQ(FirstTimeScope::work(), nullptr);
}

}  // namespace weft::first_time_work_test
