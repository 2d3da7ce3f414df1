// Replay on a device where launches depend on a batch's numbers, as those of attention do.

#include "tensor/batch.h"
#include "tests/runtime/cuda_replay_host.h"

namespace weft::cuda_replay_batch_test {

// A launch depends on the numbers of sequences and pages, and reads lengths when it runs.
class CudaReplayOfABatch : public ReplayOnADevice {
 protected:
  CudaReplayOfABatch() {
    replace(step_of("attention"), [this](const Kernel& before, const KernelCall& call) {
      const Batch& now = *call.operands[2].as<const Batch>();
      call.queue->run_on_host("a launch", [this, &now, made_of = now] {
        wrong_ += now.sequences != made_of.sequences || now.max_blocks != made_of.max_blocks ? 1 : 0;
      });
      queue_call(before, call);
    });
  }

  int wrong_ = 0;  // launches that were made of other numbers than those of their run
  const Tensor one_prompt_ = make_batch({{4, 4}}, 4), two_prompts_ = make_batch({{2, 2}, {2, 3}}, 4),
               decode_ = make_batch({{1, 1}, {1, 1}, {1, 1}, {1, 1}}, 4),
               later_ = make_batch({{1, 2}, {1, 4}, {1, 1}, {1, 3}}, 4),
               with_room_ = make_batch(std::vector<std::int32_t>{0, 4}, std::vector<std::int32_t>{4},
                                       std::vector<std::int32_t>{0, 1});
};

TEST_F(CudaReplayOfABatch, HasAGraphForEachOfItsNumbersAndOneForAllLengths) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  for (const Tensor* batch :
       {&one_prompt_, &decode_, &later_, &two_prompts_, &with_room_, &decode_, &one_prompt_, &later_})
    EXPECT_EQ(places.run(*replay, 4, ReplayMode::full, *batch), wanted(4, *batch));
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(replay->stretches(ReplayMode::full).size(), 1u);
  EXPECT_EQ(device->graph_builder().counts().captures, 4);
  std::vector<std::string> texts;
  for (const SizeGraph& size : replay->size_graphs()) texts.push_back(size.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"s0 = 4, 1 sequence of 1 page", "s0 = 4, 4 sequences of 1 page",
                                             "s0 = 4, 2 sequences of 1 page", "s0 = 4, 1 sequence of 2 pages"}));
}

TEST_F(CudaReplayOfABatch, HasPiecesAroundItThatServeEveryBatch) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  for (const Tensor* batch : {&one_prompt_, &decode_, &two_prompts_})
    EXPECT_EQ(places.run(*replay, 4, ReplayMode::piecewise, *batch), wanted(4, *batch));
  EXPECT_EQ(places.run(*replay, 2, ReplayMode::piecewise), wanted(2));
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(replay->stretches(ReplayMode::piecewise).size(), 3u);
  EXPECT_EQ(device->graph_builder().counts().captures, 4);  // 2 stretches at 2 sizes
  ASSERT_EQ(replay->size_graphs().size(), 2u);
  EXPECT_EQ(replay->size_graphs()[0].text, "s0 = 4");
}

// Nor does a failure with some numbers prevent others.
TEST_F(CudaReplayOfABatch, TriesEachOfItsNumbersByItself) {
  replace(step_of("attention"), [](const Kernel& before, const KernelCall& call) {
    if (call.operands[2].as<const Batch>()->sequences == 1)
      call.queue->launch("mix", {.threads = 2048}, std::vector<std::byte>(24));
    queue_call(before, call);
  });
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  places.bind(*replay, 4, one_prompt_);
  expect_device_error([&] { replay->run(ReplayMode::full); }, {"cuLaunchKernel", "(kernel mix)"});
  device->settle();
  EXPECT_EQ(places.run(*replay, 4, ReplayMode::full, decode_), wanted(4, decode_));
  ASSERT_EQ(replay->size_graphs().size(), 2u);
  EXPECT_NE(replay->size_graphs()[0].failure, "");
  EXPECT_EQ(replay->size_graphs()[1].failure, "");
}

}  // namespace weft::cuda_replay_batch_test
