#include "capture/recording.h"

#include <memory>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(RecordedStep, KnowsItsAttributesHoweverTheyAreSpelled) {
  const std::string rounding = "a word that is longer than what a string holds in itself", other = "down";
  RecordedStep step;
  step.attributes = {{"epsilon", 1e-5}, {"size", 3}, {"rounding", rounding}};
  step.defaults = 0b010;
  const auto would_have = [&](const GivenAttributes& given) { return step.would_have("norm", given); };
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(would_have({{"epsilon", 1e-5}, {"size", 3}, {"rounding", rounding}}));
    EXPECT_FALSE(would_have({{"epsilon", 1e-5}, {"size", 4}, {"rounding", rounding}}));
    EXPECT_FALSE(would_have({{"epsilon", 1e-5}, {"size", 3}, {"rounding", other}}));
    EXPECT_TRUE(would_have({{"rounding", rounding}, {"epsilon", 1e-5}}));
    EXPECT_FALSE(would_have({{"rounding", rounding}, {"size", 3}}));
    EXPECT_FALSE(would_have({{"rounding", rounding}, {"epsilon", 1e-5}, {"sizes", 3}}));
  }
}

TEST(RecordedStep, ACopyDoesNotLookIntoWhatItWasCopiedFrom) {
  const std::string rounding = "a word that is longer than what a string holds in itself";
  auto step = std::make_unique<RecordedStep>();
  step->attributes = {{"rounding", rounding}};
  ASSERT_TRUE(step->would_have("norm", {{"rounding", rounding}}));
  RecordedStep copy = *step;
  step.reset();
  EXPECT_FALSE(copy.spelling.has_value());
  EXPECT_TRUE(copy.would_have("norm", {{"rounding", rounding}}));
  const RecordedStep moved = std::move(copy);
  EXPECT_TRUE(moved.spelling.has_value());
}

}  // namespace
}  // namespace weft
