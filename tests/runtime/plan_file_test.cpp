// Plans of every kind are the same after a round trip; bytes that are no Plan are refused, however they were changed.

#include "runtime/plan_file.h"

#include <fstream>
#include <iostream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/property.h"
#include "tests/runtime/plan_samples.h"
#include "tests/thrown_message.h"

namespace weft::plan_file_test {

using Bytes = std::vector<std::byte>;

std::string as_text(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class PlanFileTest : public testing::Test {
 protected:
  Plan read(const Bytes& bytes) { return plan_from_bytes(bytes, kernels_.lookup()); }
  std::string error_of(const Bytes& bytes) {
    return message_of<PlanFileError>([&] { read(bytes); });
  }
  // The bytes of the Plan of every part with one change.
  std::string error_of(const std::function<void(Plan&)>& change) {
    Plan plan = plan_of_every_part(kernels_);
    change(plan);
    return error_of(plan_bytes(plan));
  }
  // The result for its bytes with the first `from` replaced.
  std::string error_of_other_bytes(const std::string& from, const std::string& to) {
    std::string text = as_text(plan_bytes(plan_of_every_part(kernels_)));
    const std::size_t at = text.find(from);
    if (at == std::string::npos || from.size() != to.size()) return "the bytes do not have " + from;
    text.replace(at, from.size(), to);
    const auto bytes = std::as_bytes(std::span(text));
    return error_of(Bytes(bytes.begin(), bytes.end()));
  }

  NamedKernels kernels_;
};

TEST_F(PlanFileTest, KeepsEveryPart) {
  const Plan plan = plan_of_every_part(kernels_);
  const Plan again = read(plan_bytes(plan));
  EXPECT_EQ(plan_difference(plan, again), "");
  EXPECT_EQ(plan_text(again), plan_text(plan));
  EXPECT_NE(plan_text(again).find("\nslot 6 scalar 1e-05\n"), std::string::npos) << plan_text(again);
  EXPECT_EQ(plan_difference({}, read(plan_bytes({}))), "");
}

TEST_F(PlanFileTest, KeepsRandomPlans) {
  std::size_t steps = 0, views = 0;
  check_property(1000, [&] {
    const auto numbers = *at_most(500, number_in(0, 1 << 20));
    const Plan plan = plan_of_numbers(numbers, kernels_);
    const Bytes bytes = plan_bytes(plan);
    const Plan again = read(bytes);
    RC_ASSERT(plan_difference(plan, again) == "");
    RC_ASSERT(plan_text(again) == plan_text(plan));
    RC_ASSERT(plan_bytes(again) == bytes);
    steps += plan.steps.size();
    for (const PlanStep& step : plan.steps) views += step.operands.size() + step.results.size();
  });
  std::cout << "count: " << steps << " steps, " << views << " views\n";
  EXPECT_GT(views, 2000u);
}

// The first seed of the fuzz target. Other bytes for the same Plan are another version of them.
TEST_F(PlanFileTest, WritesTheBytesOfItsVersion) {
  const std::string path = std::string(WEFT_SOURCE_ROOT) + "/fuzz/corpus/plan_file/every_part";
  const std::string text = as_text(plan_bytes(plan_of_every_part(kernels_)));
  if (read_file(path, 1 << 20) == text) return;
  const std::string came = testing::TempDir() + "every_part";
  std::ofstream(came, std::ios::binary) << text;
  FAIL() << "the bytes of a Plan are not what they were: raise kPlanFileVersion, and put " << came
         << " in the place of " << path;
}

TEST_F(PlanFileTest, StoresOnceWhatIsSaidOften) {
  Plan plan = plan_of_every_part(kernels_);
  const std::size_t before = plan_bytes(plan).size();
  plan.steps.push_back(plan.steps.back());
  const std::size_t step = plan_bytes(plan).size() - before;
  plan.steps.insert(plan.steps.end(), 100, plan.steps.back());
  EXPECT_EQ(plan_bytes(plan).size(), before + 101 * step);
  EXPECT_LT(step, 170u);
}

TEST_F(PlanFileTest, AsksForEachKernelOnce) {
  Plan plan = plan_of_every_part(kernels_);
  plan.steps.insert(plan.steps.end(), 10, plan.steps.back());
  std::vector<std::string> asked;
  plan_from_bytes(plan_bytes(plan), [&](const std::string& op, const std::string& provider) {
    asked.push_back(op + "@" + provider);
    return kernels_.find(op, provider);
  });
  EXPECT_EQ(asked, (std::vector<std::string>{"rms_norm@cpu", "rows_0123456789abcdef@native"}));
}

TEST_F(PlanFileTest, NamesAKernelThatIsNotHere) {
  const Bytes bytes = plan_bytes(plan_of_every_part(kernels_));
  const KernelLookup find = [&](const std::string& op, const std::string& provider) {
    return provider == "native" ? nullptr : kernels_.find(op, provider);
  };
  EXPECT_EQ(message_of<PlanFileError>([&] { plan_from_bytes(bytes, find); }),
            "[plan file] it wants the kernel rows_0123456789abcdef@native, which is not here");
}

TEST_F(PlanFileTest, RefusesOtherVersionsAndOtherFiles) {
  Bytes bytes = plan_bytes(plan_of_every_part(kernels_));
  bytes[8] = std::byte{kPlanFileVersion + 1};
  EXPECT_EQ(error_of(bytes), fmt::format("[plan file] wanted version {}, but the bytes are of version {}",
                                         kPlanFileVersion, kPlanFileVersion + 1));
  EXPECT_EQ(error_of_other_bytes("weftplan", "safetens"), "[plan file] the bytes do not begin with 'weftplan'");
  EXPECT_EQ(error_of(Bytes{}), "[plan file] wanted 8 bytes at byte 0, but only 0 are left");
}

TEST_F(PlanFileTest, RefusesBytesThatWereCutOffOrFollow) {
  Bytes bytes = plan_bytes(plan_of_every_part(kernels_));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(error_of(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length))), "") << length;
  bytes.push_back(std::byte{0});
  EXPECT_EQ(error_of(bytes), "[plan file] 1 bytes follow the end");
}

// Bytes that are still a Plan can be printed and checked by verify_plan.
TEST_F(PlanFileTest, RefusesOrReadsEveryChangedByte) {
  const Bytes bytes = plan_bytes(plan_of_every_part(kernels_));
  std::size_t refused = 0, read_anyway = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int mask : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      Bytes changed = bytes;
      changed[i] ^= static_cast<std::byte>(mask);
      Plan plan;
      if (!message_of<PlanFileError>([&] { plan = read(changed); }).empty()) {
        ++refused;
        continue;
      }
      ++read_anyway;
      EXPECT_NE(plan_text(plan), "");
      EXPECT_NE(plan_difference(plan, plan_of_every_part(kernels_)), "") << "byte " << i << " says nothing";
      message_of<Error>([&] { verify_plan(plan); });
    }
  std::cout << "count: of " << refused + read_anyway << " changed bytes " << refused << " were refused\n";
  EXPECT_GT(refused, read_anyway);
}

TEST_F(PlanFileTest, RefusesSlotsThatAreNotThere) {
  EXPECT_NE(error_of([](Plan& plan) { plan.steps[0].operands[0].slot = 7; }).find("a slot in [-1, 6], but is 7"),
            std::string::npos);
  for (const int slot : {-2, 7, INT32_MAX, INT32_MIN})
    EXPECT_NE(error_of([&](Plan& plan) { plan.steps[1].operands[1].slot = slot; }), "");
  for (const int slot : {-1, 7}) {
    EXPECT_NE(error_of([&](Plan& plan) { plan.results[0].slot = slot; }), "");
    EXPECT_NE(error_of([&](Plan& plan) { plan.steps[0].results[0].slot = slot; }), "");
    EXPECT_NE(error_of([&](Plan& plan) { plan.inputs[2] = slot; }), "");
  }
  for (const int slot : {5, 6})
    EXPECT_EQ(error_of([&](Plan& plan) { plan.inputs[2] = slot; }),
              fmt::format("[plan file] an input is slot {}, to which nothing is bound", slot));
}

TEST_F(PlanFileTest, RefusesNumbersThatNoPlanHas) {
  EXPECT_NE(error_of([](Plan& plan) { plan.steps[1].operands[1].version = -1; }), "");
  EXPECT_NE(error_of([](Plan& plan) { plan.slots[5].offset = -64; }), "");
  EXPECT_NE(error_of([](Plan& plan) { plan.slots[5].offset = 32769; }), "");
  EXPECT_NE(error_of([](Plan& plan) { plan.slots[5].first_step = 3; }), "");
  EXPECT_NE(error_of([](Plan& plan) { plan.slots[5].last_step = 3; }), "");
  EXPECT_NE(error_of([](Plan& plan) { plan.slots[0].first_step = -2; }), "");
  EXPECT_NE(error_of([](Plan& plan) { plan.arena_bytes = -1; }), "");
  EXPECT_NE(error_of([](Plan& plan) { plan.unshared_bytes = -1; }), "");
  EXPECT_EQ(error_of([](Plan& plan) { plan.arena_bytes = 16383; }),
            "[plan file] a step has 16*align(s0, 4) bytes of scratch at 16384 in an arena of 16383 bytes");
  EXPECT_EQ(error_of([](Plan& plan) { plan.steps[0].scratch_bytes = 16385; }),
            "[plan file] a step has 16385 bytes of scratch at 16384 in an arena of 32768 bytes");
}

TEST_F(PlanFileTest, RefusesScalarsOfAnotherType) {
  for (const Meta& meta : {Meta::tensor(DType::bf16, {}), Meta::tensor(DType::f32, {1}), Meta::batch()})
    EXPECT_EQ(error_of([&](Plan& plan) { plan.slots[6].meta = meta; }), "[plan file] a scalar is " + meta.text());
}

// Otherwise one short text could mean a very long sum, and equal Plans could have different bytes.
TEST_F(PlanFileTest, RefusesTextsSpelledOtherwise) {
  EXPECT_EQ(error_of_other_bytes("16*align(s0, 4)", "align(s0, 4)*16"),
            "[plan file] the dim 16*align(s0, 4) is spelled 'align(s0, 4)*16'");
  EXPECT_EQ(error_of_other_bytes("f16[2*s0 + 1, 16]", "f16[2*s0+1 , 16 ]").substr(0, 58),
            "[plan file] the type f16[2*s0 + 1, 16]{64, 1} on cpu is sp");
  EXPECT_NE(error_of_other_bytes("q4_1[64, 64]", "q4_1[64, 63]"), "");
  EXPECT_NE(error_of_other_bytes("f16[s0, 64]", "f17[s0, 64]"), "");
  EXPECT_NE(error_of_other_bytes("cuda:3", "cuda3:"), "");
  EXPECT_NE(error_of_other_bytes("bf16", "bf17"), "");
}

TEST_F(PlanFileTest, RefusesAttributesThatNoOpHas) {
  EXPECT_EQ(error_of_other_bytes("group_size", "group_sizf"), "");  // another name is as good
  EXPECT_EQ(error_of_other_bytes("limit", "shape"), "[plan file] a step has the attribute shape twice");
  Attribute deep = AttributeList{};
  for (int i = 0; i < 31; ++i) deep = AttributeList{deep};
  EXPECT_EQ(error_of([&](Plan& plan) { plan.steps[0].attributes.set("deep", deep); }), "");
  EXPECT_NE(message_of<InternalError>(
                [&] { error_of([&](Plan& plan) { plan.steps[0].attributes.set("deep", AttributeList{deep}); }); }),
            "");
}

TEST_F(PlanFileTest, TakesNoMoreMemoryThanAMultipleOfTheBytes) {
  const std::string error = error_of([&](Plan& plan) {
    plan.steps[0].op = std::string(100000, 'x');
    plan.steps.insert(plan.steps.end(), 1000, plan.steps[0]);
  });
  EXPECT_NE(error.find("more than it may"), std::string::npos) << error;
}

TEST_F(PlanFileTest, WritesNoStepWithoutAKernel) {
  Plan plan = plan_of_every_part(kernels_);
  plan.steps[0].kernel = nullptr;
  EXPECT_THROW(plan_bytes(plan), InternalError);
}

}  // namespace weft::plan_file_test
