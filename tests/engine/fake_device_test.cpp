// Models on the fake device: their steps use its stream. Kernels of provider cuda run in the emulator, products in the
// stand-in of cuBLASLt, and other calls on the host, captured as graphs or not. Tokens are the host's.

#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/thrown_message.h"

namespace weft::fake_device_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

class FakeDeviceModel : public ::testing::Test {
 protected:
  FakeDeviceModel() : path_(write_tiny_model(folder_)) {}

  std::shared_ptr<Context> context_of(const Settings& settings, const std::string& device = "fake-cuda") const {
    Options options;
    apply_environment(options, process_environment());
    set_option(options, "device", device, "test");
    set_option(options, "max-num-seqs", "4", "test");
    for (const auto& [name, value] : settings) set_option(options, name, value, "test");
    return make_context(options);
  }
  // On a fake device that does its work in another order for each seed.
  std::unique_ptr<Engine> engine(const Settings& settings, cuda::FakeSettings fake = {}) const {
    const auto context = context_of(settings);
    context->stream_device = open_fake_cuda({DeviceType::fake_cuda, 0}, std::move(fake));
    device_ = context->stream_device.get();
    return std::make_unique<Engine>(context, Checkpoint::open(path_), make_model_registry());
  }
  // With the numbers of a GPU: weights of blocks are expanded, and activations are not quantized.
  std::unique_ptr<Engine> engine_on_host(const Settings& settings) const {
    Settings all = {{"dtype", "bf16"}, {"activation-precision", "exact"}, {"kv-cache-dtype", "f16"}};
    all.insert(all.end(), settings.begin(), settings.end());
    return std::make_unique<Engine>(context_of(all, "cpu"), Checkpoint::open(path_), make_model_registry());
  }

  TemporaryFolder folder_;
  std::string path_;
  mutable cuda::StreamDevice* device_ = nullptr;  // of the engine that was made last
};

// The tokens of three prompts of unequal length that share steps.
std::vector<std::vector<int>> generated(Engine& engine) {
  std::vector<std::vector<int>> tokens(3);
  std::map<int, std::size_t> places;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    places[engine.add(some_ids(3 + 5 * static_cast<int>(i), static_cast<int>(i)),
                      {.temperature = 0, .max_tokens = 5, .ignore_end = true, .stop = {}})] = i;
  while (!engine.is_idle())
    for (const RequestEvent& event : engine.step()) tokens[places.at(event.request)].push_back(event.token);
  return tokens;
}

TEST_F(FakeDeviceModel, GivesTheHostsTokensHoweverItsStepsAreCapturedAndItsWorkIsOrdered) {
  const Settings settings{{"dtype", "bf16"}};
  const auto wanted = generated(*engine_on_host(settings));
  std::uint64_t seed = 0;
  for (const char* mode : {"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"})
    for (const char* capture : {"ready", "lazy"}) {
      Settings given{{"cc.cudagraph_mode", mode}, {"capture", capture}, {"cc.cudagraph_capture_sizes", "1,2,4,16,24"}};
      given.insert(given.end(), settings.begin(), settings.end());
      EXPECT_EQ(generated(*engine(given, {.seed = ++seed})), wanted) << mode << " " << capture << ", seed " << seed;
    }
}

TEST_F(FakeDeviceModel, GivesTheSameLogitsCapturedAndNotAndPadded) {
  for (const char* dtype : {"f32", "bf16"}) {
    const Settings settings{{"dtype", dtype}, {"max-num-batched-tokens", "16"}};
    const auto logits = [&](Settings given, std::uint64_t seed) {
      given.insert(given.end(), settings.begin(), settings.end());
      return all_logits(*engine(given, {.seed = seed}), some_ids(21));
    };
    const auto wanted = logits({{"cc.cudagraph_mode", "NONE"}}, 1);
    EXPECT_EQ(logits({{"check-replay", ""}, {"forbid-lazy", ""}}, 2), wanted) << dtype;
    EXPECT_EQ(logits({{"cc.cudagraph_capture_sizes", "3,7,16"}}, 3), wanted) << dtype;  // 21 tokens are 16 and 5
  }
}

// The kernels of the device, of which the launch that brings `left` to 0 fails.
cuda::FakeSettings failing_after(int& left) {
  cuda::FakeSettings fake;
  fake.kernels = emulated_kernels_of_device();  // found before those that each fake device has
  for (cuda::FakeKernel& kernel : fake.kernels)
    kernel.run = [&left, run = kernel.run](const cuda::FakeLaunch& launch) {
      if (left > 0 && --left == 0) throw std::runtime_error("an illegal address");
      run(launch);
    };
  return fake;
}

TEST_F(FakeDeviceModel, GoesOnAfterAKernelThatBrokeTheDevice) {
  const std::vector<int> first = some_ids(9, 1), second = some_ids(6, 2);
  const SamplingParameters greedy{.temperature = 0, .max_tokens = 5, .ignore_end = true, .stop = {}};
  const auto sound = engine({{"dtype", "bf16"}});
  const std::vector<int> wanted_first = sound->generate(first, greedy).tokens,
                         wanted_second = sound->generate(second, greedy).tokens;
  for (const char* mode : {"NONE", "FULL_AND_PIECEWISE"}) {
    int left = 0;
    const auto broken =
        engine({{"dtype", "bf16"}, {"max-num-seqs", "1"}, {"forbid-lazy", ""}, {"cc.cudagraph_mode", mode}},
               failing_after(left));
    const int fails = broken->add(first, greedy), waits = broken->add(second, greedy);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(broken->step().size(), 1u);
    left = 3;
    const auto events = broken->step();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].request, fails);
    EXPECT_EQ(events[0].finished, FinishReason::failed);
    EXPECT_NE(events[0].error.find("[fake-cuda:0]"), std::string::npos) << events[0].error;
    std::vector<int> tokens;
    while (!broken->is_idle())
      for (const RequestEvent& event : broken->step()) {
        EXPECT_EQ(event.request, waits);
        tokens.push_back(event.token);
      }
    EXPECT_EQ(tokens, wanted_second) << mode;
    left = 3;
    EXPECT_NE(message_of<DeviceError>([&] { broken->generate(first, greedy); }).find("[fake-cuda:0]"),
              std::string::npos);
    EXPECT_EQ(broken->generate(first, greedy).tokens, wanted_first) << mode;
    left = 3;
    EXPECT_NE(message_of<DeviceError>([&] { all_logits(*broken, first); }), "");
    EXPECT_EQ(all_logits(*broken, first), all_logits(*sound, first)) << mode;
  }
}

// The next step opens it anew, and the state of the other one is lost. Only requests of the step that broke it fail.
TEST_F(FakeDeviceModel, GoesOnWithTwoEnginesOfADeviceThatOneOfThemBroke) {
  const SamplingParameters greedy{.temperature = 0, .max_tokens = 6, .ignore_end = true, .stop = {}};
  const auto wanted = [&](int seed) { return engine_on_host({})->generate(some_ids(7, seed), greedy).tokens; };
  for (const bool other_goes_first : {false, true}) {
    int left = 0;
    const auto context = context_of({{"dtype", "bf16"}});
    context->stream_device = open_fake_cuda({DeviceType::fake_cuda, 0}, failing_after(left));
    Engine breaks(context, Checkpoint::open(path_), make_model_registry());
    Engine other(context, Checkpoint::open(path_), make_model_registry());
    std::vector<int> of_other;
    const auto step_other = [&] {
      for (const RequestEvent& event : other.step()) {
        EXPECT_EQ(event.error, "");
        of_other.push_back(event.token);
      }
    };
    breaks.add(some_ids(7, 1), greedy);
    other.add(some_ids(7, 2), greedy);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(breaks.step().size(), 1u);
      step_other();
    }
    left = 3;
    const auto events = breaks.step();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].finished, FinishReason::failed);
    if (other_goes_first) step_other();
    EXPECT_EQ(breaks.generate(some_ids(7, 3), greedy).tokens, wanted(3)) << other_goes_first;
    while (!other.is_idle()) step_other();
    EXPECT_EQ(of_other, wanted(2)) << other_goes_first;
    EXPECT_EQ(breaks.generate(some_ids(7, 1), greedy).tokens, wanted(1)) << other_goes_first;
    EXPECT_EQ(other.generate(some_ids(7, 1), greedy).tokens, wanted(1)) << other_goes_first;
    EXPECT_EQ(context->stream_device->openings(), 2) << "it was taken from one by the other";
  }
}

TEST_F(FakeDeviceModel, HasOneArenaForAllRangesOfAGraph) {
  const Settings settings{{"dtype", "bf16"}, {"cc.pass_config.rope_kvcache_fusion_max_token_num", "4"}};
  const auto engine = this->engine(settings);
  std::int64_t wanted = 0, apart = 0;
  const ModelCompilation& model = engine->runner().model();
  for (const ModelGraph* graph : model.graphs()) {
    std::int64_t most = 0;
    for (const auto& plan : std::set(graph->plans.begin(), graph->plans.end())) {
      most = std::max(most, plan->arena_bytes);
      apart += plan->arena_bytes;
    }
    wanted += most;
  }
  EXPECT_EQ(engine->runner().memory_use().activations_planned, wanted);
  EXPECT_LT(wanted, apart);
  EXPECT_EQ(generated(*engine), generated(*engine_on_host(settings)));
}

// The kernels of a GPU: the forms with the device's own mathematics if there are two.
TEST_F(FakeDeviceModel, GivesTheHostsTokensWithTheDevicesOwnMathematics) {
  const Settings settings{{"dtype", "f32"}};
  Settings own = settings;
  for (const char* op : {"rms_norm", "fused_add_rms_norm", "silu_and_mul"})
    own.emplace_back(fmt::format("ir-op-priority.{}", op), "cuda");
  EXPECT_EQ(generated(*engine(own)), generated(*engine_on_host(settings)));
  EXPECT_NE(all_logits(*engine(own), some_ids(6)), all_logits(*engine(settings), some_ids(6)));
}

// Kernels of the host in place of missing ones take packed weights, of numbers of the model's dtype as on a GPU.
TEST_F(FakeDeviceModel, KernelsOfTheHostPackWhatTheWeightsWereExpandedTo) {
  const auto wanted = generated(*engine_on_host({}));
  for (const Settings& given : std::vector<Settings>{{{"ir-op-priority.linear", "cpu"}}, {{"batch-invariant", ""}}})
    for (const char* mode : {"NONE", "FULL"}) {
      Settings all{{"dtype", "bf16"}, {"cc.cudagraph_mode", mode}};
      all.insert(all.end(), given.begin(), given.end());
      EXPECT_EQ(generated(*engine(all)), wanted) << given[0].first << " " << mode;
    }
}

TEST_F(FakeDeviceModel, CapturesEachSizeBeforeItIsReadyAndReportsWhatThatTook) {
  const auto engine = this->engine({{"cc.cudagraph_capture_sizes", "2,4,8"}, {"forbid-lazy", ""}});
  const ReplayReport report = engine->runner().replay_report();
  EXPECT_EQ(report.mode, ReplayMode::full_and_piecewise);
  struct Wanted {
    const char* plan;
    ReplayMode mode;
    std::vector<std::string> sizes;  // in the order of LaunchGraphDispatcher::captures
  };
  const std::string pages = " sequences of 8 pages";  // the pages of the context of 128 tokens
  const Wanted wanted[] = {{"forward", ReplayMode::piecewise, {"s0 = 2", "s0 = 8", "s0 = 4"}},
                           {"forward", ReplayMode::full, {"s0 = 2, 2" + pages, "s0 = 4, 4" + pages}},
                           {"head", ReplayMode::full, {"s0 = 2, s1 = 2", "s0 = 4, s1 = 4"}}};
  ASSERT_EQ(report.captures.size(), std::size(wanted));
  std::int64_t graphs = 0;
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    const ReplayReport::Capture& capture = report.captures[i];
    EXPECT_EQ(capture.plan, wanted[i].plan);
    EXPECT_EQ(capture.mode, wanted[i].mode);
    ASSERT_EQ(capture.sizes.size(), wanted[i].sizes.size());
    for (std::size_t size = 0; size < capture.sizes.size(); ++size) {
      EXPECT_EQ(capture.sizes[size].text, wanted[i].sizes[size]);
      EXPECT_GE(capture.sizes[size].cost.nodes, static_cast<std::int64_t>(capture.captured_steps));
      EXPECT_EQ(capture.sizes[size].failure, "");
    }
    EXPECT_EQ(capture.stretches, capture.mode == ReplayMode::full ? 1u : 3u);  // around the attention of 2 layers
    graphs += static_cast<std::int64_t>(capture.stretches * capture.sizes.size());
  }
  cuda::CudaGraphBuilder& graph_builder = device_->graph_builder();
  EXPECT_EQ(graph_builder.counts().launches, 0);
  generated(*engine);
  EXPECT_GT(graph_builder.counts().launches, 0);
  EXPECT_EQ(graph_builder.counts().captures, graphs);
}

TEST_F(FakeDeviceModel, SharesExecutablesBetweenEqualPieces) {
  const auto engine = this->engine({{"cc.cudagraph_mode", "PIECEWISE"}, {"cc.cudagraph_capture_sizes", "4,8"}});
  const cuda::CudaGraphBuilder::Counts& counts = device_->graph_builder().counts();
  // 2 sizes of the pieces before, between and after the attention of 2 layers; the sizes differ only in numbers.
  EXPECT_EQ(counts.captures, 6);
  EXPECT_EQ(counts.executables, 3);
}

TEST_F(FakeDeviceModel, LaunchesKernelsAndCallsLibrariesInOneStream) {
  const auto engine = this->engine({});
  EXPECT_GT(device_->queue().launches(), 0);  // captured
  EXPECT_GT(device_->queue().library_calls(), 0);
  EXPECT_EQ(generated(*engine), generated(*engine_on_host({})));
}

// Also if the file has blocks, f32 and f16: two layers with four products each, and the head.
TEST_F(FakeDeviceModel, MultipliesByTheLibraryInTheDtypeOfTheModel) {
  for (const char* dtype : {"auto", "f16", "f32"}) {
    const auto engine = this->engine({{"dtype", dtype}});
    const DType wanted = dtype == std::string("auto") ? DType::bf16 : *dtype_from_text(dtype);
    int products = 0;
    for (const Plan* plan : {engine->runner().forward_plan(), engine->runner().head_plan()})
      for (const PlanStep& step : plan->steps) {
        if (step.kernel == nullptr || step.kernel->op.find("linear") == std::string::npos) continue;
        EXPECT_EQ(step.kernel->op + "@" + step.kernel->provider, "linear@cublaslt");
        EXPECT_EQ(plan->slots[static_cast<std::size_t>(step.operands[1].slot)].meta.dtype, wanted) << dtype;
        ++products;
      }
    EXPECT_EQ(products, 9) << dtype;
  }
}

TEST_F(FakeDeviceModel, GoesOnWithoutACaptureForWhichThereIsNoMemory) {
  const Settings settings{{"cc.cudagraph_capture_sizes", "4"}};
  const auto engine = this->engine(settings, {.node_bytes = std::size_t{1} << 33});
  const ReplayReport report = engine->runner().replay_report();
  EXPECT_EQ(report.captures.size(), 3u);  // pieces, the whole forward and the head
  for (const ReplayReport::Capture& capture : report.captures) {
    ASSERT_EQ(capture.sizes.size(), 1u);
    for (const char* words : {"[fake-cuda:0] cuGraphInstantiate", "OUT_OF_MEMORY", "bytes free of"})
      EXPECT_NE(capture.sizes[0].failure.find(words), std::string::npos) << capture.sizes[0].failure;
  }
  EXPECT_EQ(generated(*engine), generated(*engine_on_host(settings)));
}

TEST_F(FakeDeviceModel, TakesAFailedStepAgainWithAllItsRequests) {
  for (const char* mode : {"NONE", "FULL"}) {
    const auto engine = this->engine({{"cc.cudagraph_mode", mode}});
    const SamplingParameters parameters{.temperature = 0, .max_tokens = 4, .ignore_end = true, .stop = {}};
    std::vector<int> tokens;
    engine->add(some_ids(5), parameters);
    for (int step = 0; !engine->is_idle(); ++step) {
      if (step % 2 == 1) {
        device_->queue().run_on_host("a call", [] { fail_user("[a call] something is wrong"); });
        EXPECT_EQ(message_of<UserError>([&] { engine->step(); }), "[a call] something is wrong");
      }
      for (const RequestEvent& event : engine->step()) tokens.push_back(event.token);
    }
    EXPECT_EQ(tokens, engine_on_host({})->generate(some_ids(5), parameters).tokens) << mode;
  }
}

TEST_F(FakeDeviceModel, NamesTheCallWhereItsStreamIsGoneAndAnotherModelGoesOn) {
  const auto first = engine({});
  cuda::StreamDevice& device = *device_;
  const auto second = engine({});
  device.driver().destroy(device.stream());
  first->add(some_ids(4), {.max_tokens = 2, .stop = {}});
  const std::string message = message_of<DeviceError>([&] { first->step(); });
  EXPECT_NE(message.find("[fake-cuda:0]"), std::string::npos) << message;
  EXPECT_NE(message.find("its stream was destroyed"), std::string::npos) << message;
  EXPECT_EQ(generated(*second), generated(*engine_on_host({})));
}

TEST_F(FakeDeviceModel, RunsAtOnceWhereNothingIsCompiled) {
  const Settings eager{{"enforce-eager", ""}};
  const auto engine = this->engine(eager);
  EXPECT_EQ(generated(*engine), generated(*engine_on_host(eager)));
  EXPECT_EQ(device_->queue().launches(), 0);
}

}  // namespace weft::fake_device_test
