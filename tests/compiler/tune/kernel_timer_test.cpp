// The calls of a timer, with kernels that record their arguments.

#include "compiler/tune/kernel_timer.h"

#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/test_context.h"

namespace weft::kernel_timer_test {

class KernelTimerTest : public ::testing::Test {
 protected:
  // The reference kernel of an op, with a hook for each call.
  Kernel watched(const std::string& op, const std::function<void(const KernelCall&)>& look) {
    Kernel kernel = *context_->kernels.find(op, "reference");
    kernel.run = [look, run = kernel.run](const KernelCall& call) {
      look(call);
      run(call);
    };
    return kernel;
  }
  static Tensor rows(const std::vector<float>& values) {
    return Tensor::from_bytes(Meta::tensor(DType::f32, {static_cast<std::int64_t>(values.size()), 1}), values.data());
  }

  const std::shared_ptr<Context> context_ = test_context();
  double now_ = 0;
  const std::function<double()> clock_ = [this] { return now_; };
};

TEST_F(KernelTimerTest, RunsInTheSameMemoryEachTime) {
  std::set<const std::byte*> operands, results, scratches;
  Kernel kernel = watched("abs", [&](const KernelCall& call) {
    operands.insert(call.operands[0].data);
    results.insert(call.results[0].data);
    scratches.insert(call.scratch.data());
    EXPECT_EQ(call.scratch.size(), 640u);
    now_ += 0.5;
  });
  kernel.scratch_bytes = [](const KernelRequest&) { return Dim(640); };
  KernelTimer timer(*context_, context_->ops.at("abs"), kernel, {rows({-1, 2, -3})}, {});
  EXPECT_EQ(timer.seconds(clock_), 0.5);
  EXPECT_EQ(timer.seconds(clock_, 4), 0.5) << "the mean";
  EXPECT_EQ(now_, 2.5);
  EXPECT_EQ(elements_of(timer.results()[0]), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(operands.size(), 1u);
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(scratches.size(), 1u);
  EXPECT_EQ(results.count(*operands.begin()), 0u);
}

TEST_F(KernelTimerTest, StaysRightWhenItMoves) {
  const Kernel kernel = watched("abs", [](const KernelCall&) {});
  std::vector<KernelTimer> timers;
  for (int i = 0; i < 20; ++i)
    timers.emplace_back(*context_, context_->ops.at("abs"), kernel, std::vector<Tensor>{rows({static_cast<float>(-i)})},
                        Attributes());
  for (int i = 0; i < 20; ++i) {
    timers[static_cast<std::size_t>(i)].seconds(clock_);
    EXPECT_EQ(elements_of(timers[static_cast<std::size_t>(i)].results()[0])[0], i);
  }
}

TEST_F(KernelTimerTest, WeightsTakeTurns) {
  std::vector<double> seen;
  const Kernel kernel = watched("mul", [&](const KernelCall& call) {
    EXPECT_EQ(call.operands[0].as<float>()[0], 2);
    seen.push_back(call.operands[1].as<float>()[0]);
  });
  KernelTimer timer(*context_, context_->ops.at("mul"), kernel, {rows({2}), rows({0})}, {});
  timer.take_turns(1, {rows({10}), rows({11}), rows({12})}, 2);
  timer.seconds(clock_, 5);
  EXPECT_EQ(seen, (std::vector<double>{12, 10, 11, 12, 10}));
  EXPECT_EQ(elements_of(timer.results()[0])[0], 20);
}

// A kernel of fused_add_rms_norm that writes over x and the residual, and adds 1 to each element that it finds.
class OverwritingTimerTest : public KernelTimerTest {
 protected:
  Kernel overwriting() {
    Kernel kernel{.op = "fused_add_rms_norm", .provider = "test", .writes = {0, 1}};
    kernel.run = [this](const KernelCall& call) {
      for (std::size_t i : {0, 1}) {
        EXPECT_EQ(call.operands[i].data, call.results[i].data);
        EXPECT_EQ(call.operands[i].stride[0], 4) << "as the result lies";
        for (std::int64_t k = 0; k < 8; ++k) call.operands[i].as<float>()[k] += 1;
      }
      found_.push_back(call.operands[0].as<float>()[7]);
    };
    return kernel;
  }
  KernelTimer timer(const Kernel& kernel, const Tensor& x) {
    const Tensor residual = Tensor::empty(Meta::tensor(DType::f32, {2, 4}));
    const Tensor weight = Tensor::empty(Meta::tensor(DType::f32, {4}));
    const Op& op = context_->ops.at("fused_add_rms_norm");
    return {*context_, op, kernel, {x, residual, weight}, complete_attributes(op.schema, {{"epsilon", 1e-5}})};
  }
  std::vector<float> found_;
};

TEST_F(OverwritingTimerTest, ResultsLieInTheOperandsThatAreWrittenOver) {
  const Kernel kernel = overwriting();
  const Tensor x = Tensor::empty(Meta::tensor(DType::f32, {2, 4}));
  KernelTimer timed = timer(kernel, x);
  timed.seconds(clock_, 3);
  EXPECT_EQ(found_, (std::vector<float>{1, 2, 3})) << "the same memory, run after run";
  EXPECT_EQ(timed.results()[0].data(), x.data());
  EXPECT_EQ(elements_of(timed.results()[1]), std::vector<double>(8, 3));
}

TEST_F(OverwritingTimerTest, AnOperandThatDoesNotLieAsItsResultIsCopiedEachTime) {
  const Kernel kernel = overwriting();
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {2, 6}));
  x.meta = Meta::strided(DType::f32, {2, 4}, {6, 1});
  KernelTimer timed = timer(kernel, x);
  timed.seconds(clock_, 3);
  EXPECT_EQ(found_, (std::vector<float>{1, 1, 1})) << "a fresh copy for each run";
  EXPECT_EQ(elements_of(x), std::vector<double>(8, 0));
  EXPECT_EQ(elements_of(timed.results()[0]), std::vector<double>(8, 1));
}

TEST_F(KernelTimerTest, DoesNotRunWhereNothingIsComputed) {
  const Kernel kernel = watched("abs", [](const KernelCall&) { FAIL() << "there is nothing to compute"; });
  KernelTimer timer(*context_, context_->ops.at("abs"), kernel, {Tensor::empty(Meta::tensor(DType::f32, {0, 4}))}, {});
  EXPECT_EQ(timer.seconds(clock_, 2), 0);
}

TEST_F(KernelTimerTest, RefusesToMakePagesAnew) {
  const Op& op = context_->ops.at("kv_cache_update");
  Kernel kernel = *context_->kernels.find("kv_cache_update", "reference");
  const SampleCall call = sample_calls(op)[0];
  EXPECT_NO_THROW(KernelTimer(*context_, op, kernel, call.operands, call.attributes));
  kernel.writes.clear();
  EXPECT_THROW(KernelTimer(*context_, op, kernel, call.operands, call.attributes), UserError);
}

TEST(CopiesBeyondCaches, FillThemAndEndSomewhere) {
  const auto bytes_of_copies = [](std::int64_t bytes) {
    const Tensor one = Tensor::empty(Meta::tensor(DType::u8, {bytes}));
    const std::vector<Tensor> all = copies_beyond_caches(one);
    std::set<const std::byte*> places;
    for (const Tensor& copy : all) places.insert(copy.data());
    EXPECT_EQ(places.size(), all.size());
    EXPECT_EQ(all[0].data(), one.data());
    return bytes * static_cast<std::int64_t>(all.size());
  };
  EXPECT_EQ(bytes_of_copies(1 << 20), 64 << 20);
  EXPECT_EQ(bytes_of_copies(65 << 20), 65 << 20);
  EXPECT_EQ(bytes_of_copies(1 << 10), 256 << 10) << "no more than 256 of them";
  EXPECT_EQ(bytes_of_copies(0), 0);
}

TEST(CopiesBeyondCaches, HoldTheSame) {
  const std::vector<float> values(1000, 0.5F);
  const Tensor one = Tensor::from_bytes(Meta::tensor(DType::f32, {1000}), values.data());
  for (const Tensor& copy : copies_beyond_caches(one)) EXPECT_EQ(difference(one, copy, {}, true), "");
}

}  // namespace weft::kernel_timer_test
