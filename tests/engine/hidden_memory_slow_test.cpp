// A model on a device whose memory the host cannot access, as for a GPU: all computations and copies there are queued.

#include <algorithm>
#include <atomic>
#include <functional>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "runtime/cuda/cublaslt_host.h"
#include "tests/engine/tiny_model.h"
#include "tests/thrown_message.h"

namespace weft::hidden_memory_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

std::shared_ptr<Context> context_of(bool hides, const Settings& settings) {
  Options options;
  apply_environment(options, process_environment());
  set_option(options, "device", "fake-cuda", "test");
  for (const auto& [name, value] : settings) set_option(options, name, value, "test");
  const auto context = make_context(options);
  cuda::FakeSettings fake;
  fake.hides_memory = hides;
  put_on_fake_cuda(*context, std::move(fake), {});
  return context;
}

std::unique_ptr<Engine> engine(const std::string& path, bool hides, const Settings& settings) {
  return std::make_unique<Engine>(context_of(hides, settings), Checkpoint::open(path), make_model_registry());
}

std::vector<int> generated(Engine& engine) {
  engine.add(some_ids(9), {.max_tokens = 6, .ignore_end = true});
  std::vector<int> tokens;
  while (!engine.is_idle())
    for (const RequestEvent& event : engine.step()) tokens.push_back(event.token);
  return tokens;
}

TEST(HiddenMemory, IsReachedByQueuedWorkAlone) {
  const TemporaryFolder folder;
  const std::string path = write_tiny_model(folder);
  const Settings ways[] = {{{"cc.cudagraph_mode", "NONE"}},
                           {{"cc.cudagraph_mode", "FULL"}},
                           {},  // FULL_AND_PIECEWISE
                           {{"capture", "lazy"}}};
  for (const Settings& settings : ways) {
    const auto hidden = engine(path, true, settings), open = engine(path, false, settings);
    const std::string name = settings.empty() ? "default" : settings[0].second;
    EXPECT_EQ(all_logits(*hidden, some_ids(5)), all_logits(*open, some_ids(5))) << name;
    EXPECT_EQ(generated(*hidden), generated(*open)) << name;
  }
}

TEST(HiddenMemory, IsReachedByCheckReplay) {
  const TemporaryFolder folder;
  const std::string path = write_tiny_model(folder);
  const auto checked = engine(path, true, {{"check-replay", "true"}, {"cc.cudagraph_mode", "FULL"}});
  const auto open = engine(path, false, {{"check-replay", "false"}, {"cc.cudagraph_mode", "FULL"}});
  EXPECT_EQ(generated(*checked), generated(*open));
}

TEST(HiddenMemory, IsReachedByVerification) {
  const TemporaryFolder folder;
  const std::string path = write_tiny_model(folder);
  const auto context = context_of(true, {});
  Engine hidden(context, Checkpoint::open(path), make_model_registry());
  PieceVerification verification(*context);
  hidden.runner().verify_pieces(verification);
  generated(hidden);
  for (const PieceVerdict& verdict : verification.verdicts()) {
    EXPECT_GT(verdict.calls, 0) << verdict.piece;
    EXPECT_EQ(verdict.spoiled_calls, 0) << verdict.piece;
    EXPECT_EQ(verdict.differing_calls, 0) << verdict.piece << ": " << verdict.largest_ulps;
  }
}

// The products of a device whose sums are in another order than the host's: `change` modifies each result.
std::vector<PieceVerdict> verdicts_with(std::function<void(std::byte*)> change) {
  const TemporaryFolder folder;
  const std::string path = write_tiny_model(folder);
  const auto context = context_of(true, {});
  cuda::FakeSettings fake;
  fake.hides_memory = true;
  cuda::FakeKernel product = cuda::host_product_kernel();
  product.run = [run = product.run, change = std::move(change)](const cuda::FakeLaunch& launch) {
    run(launch);
    change(launch.arguments<LibraryProduct>().result);
  };
  fake.kernels.push_back(std::move(product));  // found before the one of this name that every fake device has
  put_on_fake_cuda(*context, std::move(fake), {});
  Engine engine(context, Checkpoint::open(path), make_model_registry());
  PieceVerification verification(*context);
  engine.runner().verify_pieces(verification);
  generated(engine);
  EXPECT_NE(verification.op_by_op_text().find("and of the host where it has none"), std::string::npos);
  return verification.verdicts();
}

// The graph's ops are launched on the device, too: the host's products are other bits.
TEST(HiddenMemory, IsVerifiedByTheDevicesOwnKernels) {
  std::atomic<int> products = 0;
  const auto other_last_bit = [&](std::byte* result) {
    *result ^= std::byte{1};
    ++products;
  };
  for (const PieceVerdict& verdict : verdicts_with(other_last_bit)) {
    EXPECT_GT(verdict.calls, 0) << verdict.piece;
    EXPECT_TRUE(verdict.is_right()) << verdict.piece << ": " << verdict.value << ", " << verdict.largest_ulps;
  }
  EXPECT_GT(products, 0);
}

// As a device that does not give the same bits twice.
TEST(HiddenMemory, IsFoundToDifferWhereAProductDoes) {
  std::atomic<int> products = 0;
  const auto every_second = [&](std::byte* result) {
    if (++products % 2 == 0) *result ^= std::byte{1};
  };
  const std::vector<PieceVerdict> verdicts = verdicts_with(every_second);
  EXPECT_TRUE(std::any_of(verdicts.begin(), verdicts.end(), [](const auto& one) { return one.differing_calls > 0; }));
}

TEST(HiddenMemory, IsNotForKernelsOfTheHost) {
  const TemporaryFolder folder;
  const std::string path = write_tiny_model(folder);
  const auto message = [&](const std::pair<std::string, std::string>& setting) {
    return message_of<Error>([&] { engine(path, true, {setting}); });
  };
  const std::string of_host = message({"ir-op-priority.rms_norm", "cpu"});
  EXPECT_NE(of_host.find("a step of plan forward, piece p0, is computed by rms_norm@cpu, a kernel of the "
                         "host, which cannot read the device's memory"),
            std::string::npos)
      << of_host;
  const std::pair<std::pair<std::string, std::string>, std::string> eager[] = {
      {{"enforce-eager", "true"}, "[--enforce-eager]"},
      {{"optimization-level", "0"}, "[-O0]"},
      {{"cc.mode", "none"}, "[-cc.mode=none]"},
      {{"compile-to", "lowered"}, "[--compile-to]"}};
  for (const auto& [setting, option] : eager) {
    const std::string said = message(setting);
    EXPECT_EQ(said.find(option + " runs ops one by one on the host, which cannot read"), 0u) << said;
  }
}

TEST(HiddenMemoryDeathTest, EndsWhoeverReachesForIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  cuda::FakeSettings fake;
  fake.hides_memory = true;
  const auto device = open_fake_cuda({DeviceType::fake_cuda, 0}, std::move(fake));
  const Tensor there = device->upload(Tensor::empty(Meta::tensor(DType::f32, {4})));
  EXPECT_EQ(device->download(there).as<float>()[3], 0);
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile float*>(there.as<float>())), "");
}

}  // namespace weft::hidden_memory_test
