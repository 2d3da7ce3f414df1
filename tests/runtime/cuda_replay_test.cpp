// Replay on a device: the bits of the host for every order of work, graphs by size, and failures.

#include "tests/runtime/cuda_replay_host.h"

namespace weft::cuda_replay_test {

using CudaReplay = ReplayOnADevice;

TEST_F(CudaReplay, HasTheHostsBitsInEveryModeAndOrderOfWork) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto device = open_device(test_device_settings(seed));
    Places places(*device, *traced_, plan_);
    const auto replay = replay_on(*device);
    for (const ReplayMode mode : {ReplayMode::none, ReplayMode::piecewise, ReplayMode::full})
      for (const int rows : {1, kMostRows, 5, kMostRows})
        EXPECT_EQ(places.run(*replay, rows, mode), wanted(rows)) << replay_mode_text(mode) << " seed " << seed;
  }
}

TEST_F(CudaReplay, HasAGraphForEachSizeAndOneExecutable) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  std::vector<std::string> said;
  const auto replay = replay_on(*device, {.on_launch_graph = [&](const std::string& line) { said.push_back(line); }});
  for (const int rows : {1, kMostRows, 5, kMostRows, 1}) EXPECT_EQ(places.run(*replay, rows), wanted(rows));
  const cuda::CudaGraphBuilder::Counts counts = device->graph_builder().counts();
  EXPECT_EQ(counts.captures, 3);
  EXPECT_EQ(counts.executables, 1);
  EXPECT_EQ(counts.updates, 4);  // whenever the size changed
  EXPECT_EQ(counts.refusals, 0);
  EXPECT_EQ(counts.launches, 5);
  ASSERT_EQ(replay->size_graphs().size(), 3u);
  EXPECT_EQ(replay->size_graphs()[1].text, "s0 = 8");
  EXPECT_EQ(replay->size_graphs()[1].cost.nodes, static_cast<std::int64_t>(plan_.steps.size()));
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].find(fmt::format("layer: captured {} launches, FULL, s0 = 1, in ", plan_.steps.size())), 0u)
      << said[0];
}

TEST_F(CudaReplay, SharesAnExecutableBetweenEqualPlans) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto first = replay_on(*device), second = replay_on(*device);
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(places.run(*first, 4), wanted(4));
    EXPECT_EQ(places.run(*second, 4), wanted(4));
  }
  EXPECT_EQ(device->graph_builder().counts().captures, 2);
  EXPECT_EQ(device->graph_builder().counts().executables, 1);
  EXPECT_EQ(device->graph_builder().counts().updates, 5);
}

TEST_F(CudaReplay, CapturesAnewWhatMoved) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  EXPECT_EQ(places.run(*replay, 3), wanted(3));
  for (const std::size_t input : {std::size_t{0}, std::size_t{5}}) {  // x and the KV pages
    places.move(input);
    EXPECT_EQ(places.run(*replay, 3), wanted(3));
    EXPECT_EQ(places.run(*replay, 3), wanted(3));
  }
  EXPECT_EQ(device->graph_builder().counts().captures, 3);
  EXPECT_EQ(device->graph_builder().counts().executables, 1);
  EXPECT_EQ(replay->size_graphs().size(), 1u);
}

// As the output of another Plan is, if several alternate.
TEST_F(CudaReplay, KeepsTheGraphOfWhatIsBackWhereItLay) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  EXPECT_EQ(places.run(*replay, 3), wanted(3));
  Tensor elsewhere = layer_inputs(*traced_, 5).tensors[0];
  elsewhere.storage = device->allocate_host(elsewhere.storage->bytes());
  places.bind(*replay, 5);
  replay->bind(0, elsewhere);
  replay->run(ReplayMode::none);
  device->synchronize();
  EXPECT_EQ(places.run(*replay, 3), wanted(3));
  EXPECT_EQ(device->graph_builder().counts().captures, 1);
}

TEST_F(CudaReplay, CapturesBeforeItRunsAndNothingElseOnceThatIsForbidden) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  FirstTimeWork work;
  const auto replay = replay_on(*device, {.first_time_work = &work});
  for (const int rows : {kMostRows, 2}) {
    places.bind(*replay, rows);
    replay->capture_bound(ReplayMode::full);
  }
  EXPECT_EQ(work.counts(FirstTime::capture).before_ready, 2);
  EXPECT_EQ(device->graph_builder().counts().launches, 0);
  work.set_ready(true);
  EXPECT_EQ(places.run(*replay, 2), wanted(2));
  const std::string message = message_of<InternalError>([&] { places.run(*replay, 3); });
  EXPECT_NE(message.find("plan layer, FULL, s0 = 3 wants to capture"), std::string::npos) << message;
  places.move(0);
  EXPECT_NE(message_of<InternalError>([&] { places.run(*replay, 2); }).find("s0 = 2 wants to capture"),
            std::string::npos)
      << "what moved is captured anew";
}

TEST_F(CudaReplay, IsHeldAgainstItsStepsOneByOne) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device, {.check = true});
  for (const ReplayMode mode : {ReplayMode::piecewise, ReplayMode::full})
    EXPECT_EQ(places.run(*replay, 6, mode), wanted(6));
}

TEST_F(CudaReplay, ShowsWhatAStepLeftToItsObserver) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const auto device = open_device(test_device_settings(seed));
    Places places(*device, *traced_, plan_);
    const auto replay = replay_on(*device);
    std::string last;
    replay->observer = [&](std::size_t step) {
      if (step + 1 == plan_.steps.size()) last = bytes_of_tensor(replay->result(0));
    };
    bool is_ready = false, was_ready = false;
    device->queue().run_on_host("what a run begins with", [&] { is_ready = true; });
    replay->on_start = [&] { was_ready = is_ready; };
    places.run(*replay, 4);
    EXPECT_TRUE(was_ready) << seed;
    EXPECT_EQ(last, wanted(4)[0]) << seed;
  }
}

TEST_F(CudaReplay, RunsStepByStepWhereThereIsNoMemoryForACapture) {
  cuda::FakeSettings settings = test_device_settings();
  settings.node_bytes = kMemoryBytes;
  const auto device = open_device(settings);
  Places places(*device, *traced_, plan_);
  std::vector<std::string> said;
  const auto replay = replay_on(*device, {.on_launch_graph = [&](const std::string& line) { said.push_back(line); }});
  for (const int rows : {2, 2, 7}) EXPECT_EQ(places.run(*replay, rows), wanted(rows));
  ASSERT_EQ(said.size(), 2u);  // each size is tried once
  for (const char* words : {"layer: FULL, s0 = 2, runs step by step", "[fake-cuda:0] cuGraphInstantiate",
                            "CUDA_ERROR_OUT_OF_MEMORY", "takes", "bytes free of 4194304"})
    EXPECT_NE(said[0].find(words), std::string::npos) << words << " in: " << said[0];
  EXPECT_EQ(replay->size_graphs()[1].text, "s0 = 7");
  EXPECT_NE(replay->size_graphs()[1].failure, "");
}

std::size_t free_bytes(cuda::StreamDevice& device) {
  device.synchronize();
  return device.driver().memory(0).free;
}

TEST_F(CudaReplay, GivesBackItsExecutablesWithTheLastThatSharesThem) {
  cuda::FakeSettings settings = test_device_settings();
  settings.node_bytes = 1024;
  const auto device = open_device(settings);
  Places places(*device, *traced_, plan_);
  const std::size_t before = free_bytes(*device);
  auto first = replay_on(*device), second = replay_on(*device);
  const std::size_t without_graphs = free_bytes(*device);
  EXPECT_EQ(places.run(*first, 4), wanted(4));
  EXPECT_EQ(places.run(*second, 4), wanted(4));
  EXPECT_EQ(device->graph_builder().counts().executables, 1);
  const std::size_t arena = (before - without_graphs) / 2, executable = without_graphs - free_bytes(*device);
  EXPECT_EQ(executable, 1024 * plan_.steps.size());
  first.reset();
  EXPECT_EQ(free_bytes(*device), before - arena - executable);
  EXPECT_EQ(places.run(*second, 4), wanted(4));
  second.reset();
  EXPECT_EQ(free_bytes(*device), before);
  const auto third = replay_on(*device);
  EXPECT_EQ(places.run(*third, 4), wanted(4));
  EXPECT_EQ(device->graph_builder().counts().executables, 2);
}

TEST_F(CudaReplay, GivesBackWhatACaptureThatFailsHadTaken) {
  int tried = 0;
  // From no memory for the first piece up to enough for all of them.
  for (std::size_t node_bytes = std::size_t{1} << 21; node_bytes > 1024; node_bytes -= node_bytes / 8) {
    cuda::FakeSettings settings = test_device_settings();
    settings.node_bytes = node_bytes;
    const auto device = open_device(settings);
    Places places(*device, *traced_, plan_);
    const auto replay = replay_on(*device);
    const std::size_t before = free_bytes(*device);
    places.bind(*replay, 4);
    replay->capture_bound(ReplayMode::piecewise);
    if (replay->size_graphs().at(0).failure.empty()) break;
    EXPECT_EQ(free_bytes(*device), before) << node_bytes;
    tried += device->graph_builder().counts().executables > 0 ? 1 : 0;
    EXPECT_EQ(places.run(*replay, 4, ReplayMode::piecewise), wanted(4));
  }
  EXPECT_GT(tried, 0) << "some had an executable of the first piece";
}

TEST_F(CudaReplay, TakesNothingForItsFirstLaunchOnceItIsCaptured) {
  cuda::FakeSettings settings = test_device_settings();
  settings.uploaded_node_bytes = 2048;
  const auto device = open_device(settings);
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  places.bind(*replay, 4);
  const std::size_t before = free_bytes(*device);
  replay->capture_bound(ReplayMode::full);
  const std::size_t captured = free_bytes(*device);
  EXPECT_EQ(before - captured, 2048 * plan_.steps.size());
  EXPECT_EQ(replay->size_graphs().at(0).cost.device_bytes, static_cast<std::int64_t>(before - captured));
  EXPECT_EQ(places.run(*replay, 4), wanted(4));
  EXPECT_EQ(free_bytes(*device), captured);
}

TEST_F(CudaReplay, NamesAKernelThatFailsToLaunchAndGoesOn) {
  replace(step_of("linear"), [](const Kernel& before, const KernelCall& call) {
    if (call.operands[0].size[0] == 5) call.queue->launch("mix", {.threads = 2048}, std::vector<std::byte>(24));
    queue_call(before, call);
  });
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  EXPECT_EQ(places.run(*replay, 4), wanted(4));
  places.bind(*replay, 5);
  expect_device_error([&] { replay->run(ReplayMode::full); }, {"cuLaunchKernel", "(kernel mix)"});
  device->settle();
  ASSERT_EQ(replay->size_graphs().size(), 2u);  // it was not the capture's fault
  EXPECT_NE(replay->size_graphs()[1].failure.find("(kernel mix)"), std::string::npos);
  EXPECT_EQ(places.run(*replay, 4), wanted(4));
  EXPECT_EQ(places.run(*replay, 6), wanted(6));
}

TEST_F(CudaReplay, SaysWhichKernelBrokeTheDeviceAndAnotherDeviceGoesOn) {
  const Kernel* const before = plan_.steps[step_of("linear")].kernel;
  replace(step_of("linear"),
          [](const Kernel&, const KernelCall& call) { call.queue->launch("fail", {}, std::vector<std::byte>(24)); });
  const auto device = open_device(), other = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  places.bind(*replay, 2);
  replay->run(ReplayMode::full);
  expect_device_error([&] { device->synchronize(); }, {"CUDA_ERROR_LAUNCH_FAILED", "kernel fail"});
  EXPECT_TRUE(device->is_broken());
  places.bind(*replay, 3);
  expect_device_error([&] { replay->run(ReplayMode::full); }, {"kernel fail"});
  EXPECT_EQ(replay->size_graphs().size(), 1u);

  plan_.steps[step_of("linear")].kernel = before;
  Places elsewhere(*other, *traced_, plan_);
  const auto sound = replay_on(*other);
  EXPECT_EQ(elsewhere.run(*sound, 2), wanted(2));
}

TEST_F(CudaReplay, OfADestroyedStreamNamesTheCall) {
  const auto device = open_device();
  Places places(*device, *traced_, plan_);
  const auto replay = replay_on(*device);
  EXPECT_EQ(places.run(*replay, 2), wanted(2));
  device->driver().destroy(device->stream());
  expect_device_error([&] { places.run(*replay, 2); }, {"[fake-cuda:0]", "its stream was destroyed"});
}

}  // namespace weft::cuda_replay_test
