#include "compiler/store/plan_bytes.h"

#include <gtest/gtest.h>

#include "codegen/compile_rows.h"
#include "compiler/pipeline.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::plan_bytes_test {

class PlanBytesTest : public ::testing::Test {
 protected:
  // Read by a Context of their own, which keeps their functions until the next ones are read.
  std::vector<std::shared_ptr<const Plan>> read(const PlanBytes& bytes) {
    reader_ = test_context();
    return plans_of_bytes(bytes.bytes, bytes.objects, *small_layer(*reader_), *reader_);
  }
  static std::vector<const Plan*> pointers_to(const CompiledRanges& compiled) {
    std::vector<const Plan*> plans;
    for (const auto& plan : compiled.plans) plans.push_back(plan.get());
    return plans;
  }

  std::shared_ptr<Context> reader_;
  const std::shared_ptr<Context> context_ = test_context();
  const CompiledRanges compiled_ =
      compile_ranges(*small_layer(*context_), *context_, {{1, 4}, {5, 64}, {65, 128}}, PassRunnerOptions());
  const PlanBytes made_ = bytes_of_plans(pointers_to(compiled_), *context_->generated);
};

TEST_F(PlanBytesTest, GiveBackThePlansOfEveryRange) {
  const auto plans = read(made_);
  ASSERT_EQ(plans.size(), 3u);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    EXPECT_EQ(plan_text(*plans[i]), plan_text(*compiled_.plans[i])) << i;
    EXPECT_EQ(plans[i] == plans[0], compiled_.plans[i] == compiled_.plans[0]) << i;
  }
}

TEST_F(PlanBytesTest, NameEachObjectOnceByItsHash) {
  std::set<ContentHash> hashes;
  for (const auto& [hash, object] : made_.objects) {
    EXPECT_EQ(hash, hash_bytes(object));
    hashes.insert(hash);
  }
  EXPECT_EQ(objects_named(made_.bytes), hashes);
  EXPECT_EQ(hashes.empty(), !can_compile_rows());
  std::size_t functions = 0;
  for (const std::string& name : functions_of(pointers_to(compiled_), *context_->generated)) {
    EXPECT_TRUE(hashes.contains(hash_bytes(context_->generated->object(name).code))) << name;
    ++functions;
  }
  EXPECT_EQ(functions, context_->generated->size());
}

TEST_F(PlanBytesTest, AnObjectThatIsNotThereOrIsAnotherIsAnError) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  ASSERT_GE(made_.objects.size(), 2u);
  for (const auto& [hash, object] : made_.objects) {
    PlanBytes without = made_;
    without.objects.erase(hash);
    EXPECT_NE(message_of<Error>([&] { read(without); }).find("wants the object " + hash.hex()), std::string::npos);
    PlanBytes swapped = made_;
    for (auto& [other, bytes] : swapped.objects)
      if (other != hash) bytes = object;
    EXPECT_NE(message_of<Error>([&] { read(swapped); }), "");
  }
}

TEST_F(PlanBytesTest, AreOneWithTheirObjectsAndApartAgain) {
  const std::vector<std::byte> whole = joined(made_);
  const PlanBytes apart = parted(whole);
  EXPECT_EQ(apart.bytes, made_.bytes);
  EXPECT_EQ(apart.objects, made_.objects);
  EXPECT_NE(message_of([] { parted({}); }), "");
}

// Truncated at any byte, or with any byte changed, they are an error or Plans.
TEST_F(PlanBytesTest, DamagedOnesAreAnErrorOrPlans) {
  int refused = 0;
  const std::size_t step = std::max<std::size_t>(1, made_.bytes.size() / 300);
  for (std::size_t at = 0; at < made_.bytes.size(); at += step) {
    PlanBytes cut = made_, changed = made_;
    cut.bytes.resize(at);
    EXPECT_NE(message_of<Error>([&] { read(cut); }), "") << at;
    changed.bytes[at] ^= std::byte{0x10};
    refused += message_of<Error>([&] { read(changed); }).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 50);
}

}  // namespace weft::plan_bytes_test
