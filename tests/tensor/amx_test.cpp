#include "tensor/amx.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "tensor/device.h"

namespace weft::amx_test {

constexpr AmxFacts kUsable = {.is_virtual = true,
                              .tile = true,
                              .bf16 = true,
                              .i8 = true,
                              .wide_tiles = true,
                              .saves_tiles = true,
                              .permission_error = 0};

// Of a host with AMX after `change`.
template <class Change>
std::string problem_with(Change change) {
  AmxFacts facts = kUsable;
  change(facts);
  return amx_problem(facts);
}

void expect_part(const std::string& text, const char* part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST(Amx, SaysWhyItCannotBeUsed) {
  EXPECT_EQ(amx_problem(kUsable), "");
  expect_part(amx_problem({.is_virtual = true}), "hypervisor hides");
  EXPECT_EQ(amx_problem({}), "the processor has none");
  expect_part(problem_with([](AmxFacts& facts) { facts.bf16 = false; }), "no bf16");
  expect_part(problem_with([](AmxFacts& facts) { facts.i8 = false; }), "no i8");
  expect_part(problem_with([](AmxFacts& facts) { facts.tile = false; }), "no tiles");
  expect_part(problem_with([](AmxFacts& facts) { facts.wide_tiles = false; }), "smaller");
  expect_part(problem_with([](AmxFacts& facts) { facts.saves_tiles = false; }), "does not save");
  expect_part(problem_with([](AmxFacts& facts) { facts.permission_error = EPERM; }), "refused permission");
}

TEST(Amx, IsALevelOfTheHostIfItCanBeUsed) {
  const DeviceDescription host = describe_cpu("", 1);
  EXPECT_EQ(host.amx_problem.empty(), host.host >= CpuFeatures::amx) << host.amx_problem;
  if (!amx_problem(host_amx()).empty()) {
    EXPECT_EQ(host.amx_problem, amx_problem(host_amx()));
  }
}

}  // namespace weft::amx_test
