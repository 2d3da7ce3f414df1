// The queue that kernels and host functions go to: order, errors, captures.

#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/cuda/driver_queue.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_driver_queue_test {

using namespace weft::cuda;

struct QueueHost {
  explicit QueueHost(std::uint64_t seed = 1)
      : driver(open_fake_device(test_device_settings(seed))), stream(driver->create_stream(0)) {
    modules = {driver->load_module(0, fake_image({90}))};
    queue = std::make_unique<DriverQueue>(*driver, stream, modules);
    for (std::uint32_t** buffer : {&a, &b}) {
      *buffer = static_cast<std::uint32_t*>(driver->allocate_host(0, TestDevices::kBytes));
      std::fill_n(*buffer, TestDevices::kCount, 1u);
    }
  }
  void launch(const std::string& kernel, std::uint32_t* to, const std::uint32_t* from, std::uint32_t threads = 32) {
    const MixArguments arguments{to, from, TestDevices::kCount};
    queue->launch(kernel, {.threads = threads}, std::as_bytes(std::span(&arguments, 1)));
  }
  void mix_on_host(std::uint32_t* to, const std::uint32_t* from) {
    queue->run_on_host("mix@host", [to, from] {
      for (std::uint32_t i = 0; i < TestDevices::kCount; ++i) to[i] = mixed(to[i], from[i]);
    });
  }

  std::unique_ptr<Driver> driver;
  Stream stream;
  std::vector<Module> modules;
  std::unique_ptr<DriverQueue> queue;
  std::uint32_t *a = nullptr, *b = nullptr;
};

TEST(DriverQueue, RunsKernelsAndHostFunctionsInTheOrderInWhichTheyCame) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    QueueHost host(seed);
    std::uint32_t a = 1, b = 1;
    for (int i = 0; i < 3; ++i) {
      host.launch("mix", host.a, host.b);
      host.mix_on_host(host.b, host.a);
      a = mixed(a, b);
      b = mixed(b, a);
    }
    host.queue->synchronize();
    EXPECT_EQ(host.b[0], b) << seed;
    EXPECT_EQ(host.a[TestDevices::kCount - 1], a) << seed;
    EXPECT_EQ(host.queue->launches(), 3);
  }
}

TEST(DriverQueue, ThrowsWhatTheFirstHostFunctionThrewAndGoesOn) {
  QueueHost host;
  host.mix_on_host(host.a, host.b);
  host.queue->run_on_host("first", [] { fail_user("[embedding] id 300 is not in the table"); });
  host.queue->run_on_host("second", [] { fail_device("never seen"); });
  host.mix_on_host(host.b, host.a);  // left out
  EXPECT_EQ(message_of<UserError>([&] { host.queue->synchronize(); }), "[embedding] id 300 is not in the table");
  EXPECT_EQ(host.a[0], mixed(1, 1));
  EXPECT_EQ(host.b[0], 1u);
  host.mix_on_host(host.b, host.a);
  host.queue->synchronize();
  EXPECT_EQ(host.b[0], mixed(1, mixed(1, 1)));
}

TEST(DriverQueue, NamesTheKernelThatItCannotLaunch) {
  QueueHost host;
  expect_device_error([&] { host.launch("mixed_up", host.a, host.b); },
                      {"[fake-cuda:0]", "cuModuleGetFunction mixed_up", "CUDA_ERROR_NOT_FOUND"});
  expect_device_error([&] { host.launch("mix", host.a, host.b, 2048); },
                      {"cuLaunchKernel", "CUDA_ERROR_INVALID_VALUE", "(kernel mix)"});
  const std::byte one[1] = {};
  expect_device_error([&] { host.queue->launch("fail", {}, one); }, {"takes 24 bytes of arguments"});
  host.launch("mix", host.a, host.b);
  host.queue->synchronize();
  EXPECT_EQ(host.a[0], mixed(1, 1));
}

TEST(DriverQueue, LooksForAKernelWhereItWasToldAndNowhereElse) {
  QueueHost host;
  const Module own = host.driver->load_module(0, fake_image({90}));
  host.queue->add(own, "mix");
  host.driver->destroy(host.modules[0]);  // where it would be searched otherwise
  host.launch("mix", host.a, host.b);
  host.queue->synchronize();
  EXPECT_EQ(host.a[0], mixed(1, 1));
  expect_device_error([&] { host.launch("fail", host.a, host.b); }, {"its module was destroyed"});
}

TEST(DriverQueue, CapturesWhatItIsGivenAndRunsNoneOfIt) {
  QueueHost host;
  const DriverQueue::Recording recording = host.queue->record([&] {
    host.launch("mix", host.a, host.b);
    host.mix_on_host(host.b, host.a);
  });
  EXPECT_EQ(recording.work.form, "mix host:mix@host ");
  EXPECT_EQ(recording.work.nodes, 2);
  EXPECT_EQ(host.driver->node_count(*recording.graph), 2u);
  host.queue->synchronize();
  EXPECT_EQ(host.a[0], 1u);
  EXPECT_EQ(host.b[0], 1u);
}

TEST(DriverQueue, EndsACaptureInWhichSomethingIsThrown) {
  QueueHost host;
  expect_device_error(
      [&] {
        host.queue->record([&] {
          host.mix_on_host(host.a, host.b);
          host.launch("mix", host.a, host.b, 2048);
        });
      },
      {"cuLaunchKernel", "(kernel mix)"});
  EXPECT_FALSE(host.driver->is_capturing(host.stream));
  host.launch("mix", host.a, host.b);
  host.queue->synchronize();
  EXPECT_EQ(host.a[0], mixed(1, 1));
}

TEST(DriverQueue, OfADestroyedStreamSaysSoAndLeavesNothingBehind) {
  QueueHost host;
  bool has_run = false;
  host.queue->run_on_host("last", [&] { has_run = true; });
  host.driver->destroy(host.stream);
  expect_device_error([&] { host.launch("mix", host.a, host.b); }, {"[fake-cuda:0]", "its stream was destroyed"});
  expect_device_error([&] { host.queue->synchronize(); }, {"its stream was destroyed"});
  EXPECT_TRUE(has_run);  // earlier work still runs, before its memory is freed
}

TEST(DriverQueue, SaysWhichKernelBrokeTheDevice) {
  QueueHost host;
  host.launch("fail", host.a, host.b);
  host.mix_on_host(host.a, host.b);
  expect_device_error([&] { host.queue->synchronize(); },
                      {"CUDA_ERROR_LAUNCH_FAILED", "kernel fail", "divided by zero"});
  EXPECT_EQ(host.a[0], 1u);
  expect_device_error([&] { host.launch("mix", host.a, host.b); }, {"kernel fail"});
}

}  // namespace weft::cuda_driver_queue_test
