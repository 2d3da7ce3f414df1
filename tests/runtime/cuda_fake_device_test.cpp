// The fake device runs work late and in any order that streams and events permit, and no other. It reveals what host
// code forgets.

#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/cuda/fake_device.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_fake_device_test {

using namespace weft::cuda;

constexpr int kSeeds = 200;
constexpr std::size_t kBytes = TestDevices::kBytes;

// With and without the forgotten call, for every seed: the effects of a host bug. The correct program never fails.
void expect_caught(const std::function<bool(std::uint64_t seed, bool is_forgotten)>& gives_right_result) {
  EXPECT_FALSE(is_caught(kSeeds, [&](std::uint64_t seed) { return gives_right_result(seed, false); }));
  EXPECT_TRUE(is_caught(kSeeds, [&](std::uint64_t seed) { return gives_right_result(seed, true); }));
}

TEST(CudaFakeDevice, RunsAStreamInOrder) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TestDevices devices(seed);
    const Stream stream = devices.driver().create_stream(0);
    std::uint32_t* a = devices.buffer(1);
    std::uint32_t* b = devices.buffer(2);
    std::uint32_t wanted[] = {1, 2};
    for (int i = 0; i < 5; ++i) {
      devices.mix(stream, a, b);
      devices.mix(stream, b, a);
      wanted[0] = mixed(wanted[0], wanted[1]);
      wanted[1] = mixed(wanted[1], wanted[0]);
    }
    EXPECT_EQ(devices.read(a)[0], wanted[0]) << seed;
    EXPECT_EQ(devices.read(b)[TestDevices::kCount - 1], wanted[1]) << seed;
  }
}

TEST(CudaFakeDevice, RunsStreamsInEveryOrderAndAlwaysTheSameForASeed) {
  std::set<std::uint32_t> results;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto run = [&] {
      TestDevices devices(seed);
      std::uint32_t* a = devices.buffer(0);
      std::uint32_t* from[] = {devices.buffer(1), devices.buffer(2), devices.buffer(3)};
      for (std::uint32_t* buffer : from) devices.mix(devices.driver().create_stream(0), a, buffer);
      return devices.read(a)[0];
    };
    const std::uint32_t result = run();
    EXPECT_EQ(run(), result) << seed;
    results.insert(result);
  }
  EXPECT_EQ(results.size(), 6u);  // the orders of three
}

TEST(CudaFakeDevice, CatchesAMissingEvent) {
  expect_caught([](std::uint64_t seed, bool is_forgotten) {
    TestDevices devices(seed);
    Driver& driver = devices.driver();
    const Stream first = driver.create_stream(0), second = driver.create_stream(0);
    std::uint32_t* a = devices.buffer(1);
    std::uint32_t* b = devices.buffer(2);
    devices.mix(first, a, b);
    const Owner event(driver, driver.create_event(0));
    driver.record(*event, first);
    if (!is_forgotten) driver.wait(second, *event);
    devices.mix(second, b, a);
    return devices.read(b)[0] == mixed(2, mixed(1, 2));
  });
}

TEST(CudaFakeDevice, CatchesAMissingEventBetweenDevices) {
  expect_caught([](std::uint64_t seed, bool is_forgotten) {
    TestDevices devices(seed, 2);
    Driver& driver = devices.driver();
    const Stream first = driver.create_stream(0), second = driver.create_stream(1);
    std::uint32_t* a = devices.buffer(1, 0);
    std::uint32_t* b = devices.buffer(2, 1);
    devices.mix(first, a, a);
    const Owner event(driver, driver.create_event(0));
    driver.record(*event, first);
    const CurrentGuard guard(driver, second);
    if (!is_forgotten) driver.wait(second, *event);
    driver.copy(second, b, a, kBytes);
    return devices.read(b, 1)[0] == mixed(1, 1);
  });
}

TEST(CudaFakeDevice, CatchesWorkOnTheWrongStream) {
  expect_caught([](std::uint64_t seed, bool is_forgotten) {
    TestDevices devices(seed);
    const Stream right = devices.driver().create_stream(0), wrong = devices.driver().create_stream(0);
    std::uint32_t* a = devices.buffer(1);
    std::uint32_t* b = devices.buffer(2);
    devices.mix(right, a, b);
    devices.mix(is_forgotten ? wrong : right, b, a);
    return devices.read(b)[0] == mixed(2, mixed(1, 2));
  });
}

TEST(CudaFakeDevice, CatchesAHostThatDoesNotWait) {
  expect_caught([](std::uint64_t seed, bool is_forgotten) {
    TestDevices devices(seed);
    Driver& driver = devices.driver();
    const Stream stream = driver.create_stream(0);
    std::uint32_t* a = devices.buffer(1);
    std::vector<std::uint32_t> result(TestDevices::kCount);
    devices.mix(stream, a, a);
    driver.copy(stream, result.data(), a, kBytes);
    if (!is_forgotten) driver.synchronize(stream);
    const std::uint32_t seen = result[0];
    driver.synchronize(stream);
    return seen == mixed(1, 1);
  });
}

TEST(CudaFakeDevice, CatchesAHostThatChangesWhatIsStillToBeCopied) {
  expect_caught([](std::uint64_t seed, bool is_forgotten) {
    TestDevices devices(seed);
    Driver& driver = devices.driver();
    const Stream stream = driver.create_stream(0);
    std::uint32_t* a = devices.buffer(1);
    std::vector<std::uint32_t> values(TestDevices::kCount, 8);
    driver.copy(stream, a, values.data(), kBytes);
    if (!is_forgotten) driver.synchronize(stream);
    values.assign(values.size(), 9);
    return devices.read(a)[0] == 8;
  });
}

// Memory used on a stream that is not ordered after its allocation, or before its release. A kernel that checks its
// input reports an error, another one computes garbage.
TEST(CudaFakeDevice, CatchesUseBeforeAllocationAndAfterRelease) {
  for (const char* kernel : {"mix", "mix_unchecked"})
    for (const bool at_the_end : {false, true})
      expect_caught([&](std::uint64_t seed, bool is_forgotten) {
        TestDevices devices(seed);
        Driver& driver = devices.driver();
        const Stream owner = driver.create_stream(0), user = driver.create_stream(0);
        const Owner event(driver, driver.create_event(0));
        std::uint32_t* result = devices.buffer(1);
        auto* memory = static_cast<std::uint32_t*>(driver.allocate(owner, kBytes));
        driver.record(*event, owner);
        if (at_the_end || !is_forgotten) driver.wait(user, *event);
        driver.fill(user, memory, 0, kBytes);
        devices.mix(user, result, memory, kernel);
        driver.record(*event, user);
        if (!at_the_end || !is_forgotten) driver.wait(owner, *event);
        driver.release(owner, memory);
        return devices.read(result)[0] == mixed(1, 0);
      });
}

TEST(CudaFakeDevice, CatchesWritesAfterReleaseAndBehindTheEnd) {
  TestDevices devices(1);
  Driver& driver = devices.driver();
  const Stream stream = driver.default_stream(0);
  std::uint32_t* a = devices.buffer(1);
  auto* released = static_cast<std::uint32_t*>(driver.allocate(stream, kBytes));
  driver.release(stream, released);
  devices.mix(stream, released, a, "mix_unchecked");
  expect_device_error([&] { driver.synchronize_device(0); },
                      {"CUDA_ERROR_ILLEGAL_ADDRESS", "something wrote to 96 bytes", "after they were released"});
  TestDevices others(1);
  void* small = others.driver().allocate(stream, kBytes - 4);
  others.driver().fill(stream, small, 0, kBytes - 4);
  others.mix(stream, static_cast<std::uint32_t*>(small), others.buffer(1), "mix_unchecked");
  expect_device_error([&] { others.driver().synchronize_device(0); },
                      {"CUDA_ERROR_ILLEGAL_ADDRESS", "wrote beyond the end of 92 bytes"});
}

TEST(CudaFakeDevice, HoldsKernelsAndCopiesToTheMemoryTheyAreGiven) {
  const auto message = [](const std::function<void(TestDevices&, Stream)>& queue) {
    TestDevices devices(1, 2);
    const Stream stream = devices.driver().default_stream(0);
    return message_of<DeviceError>([&] {
      queue(devices, stream);
      devices.driver().synchronize(stream);
    });
  };
  const auto expect_part = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  std::vector<std::uint32_t> host(TestDevices::kCount);
  expect_part(
      message([&](TestDevices& devices, Stream stream) { devices.mix(stream, devices.buffer(1), host.data()); }),
      "are not the device's memory");
  expect_part(message([&](TestDevices& devices, Stream stream) {
                devices.mix(stream, devices.buffer(1), devices.buffer(1, 1));
              }),
              "are the memory of device 1, but it runs on device 0");
  expect_part(message([&](TestDevices& devices, Stream stream) {
                devices.mix(stream, devices.buffer(1), devices.buffer(1) + 1);
              }),
              "96 bytes at");
  expect_part(message([&](TestDevices& devices, Stream stream) {
                devices.driver().copy(stream, devices.buffer(1), host.data(), kBytes + 1);
              }),
              "reaches beyond the end of an allocation");
  expect_part(message([&](TestDevices& devices, Stream stream) { devices.driver().fill(stream, host.data(), 0, 4); }),
              "is not of a device's memory");
}

TEST(CudaFakeDevice, TellsKernelsWhichMemoryTheyMayUse) {
  FakeSettings settings = test_device_settings(1, 2);
  std::vector<std::size_t> seen;
  settings.kernels.push_back({"look", 0, [&](const FakeLaunch& launch) {
                                for (const std::span<std::byte> memory : launch.allocations())
                                  seen.push_back(memory.size());
                              }});
  TestDevices devices(std::move(settings));
  Driver& driver = devices.driver();
  const Stream stream = driver.default_stream(0);
  devices.buffer(1, 1);
  driver.release(stream, driver.allocate(stream, 48));
  driver.allocate(stream, 32);
  const Owner module(driver, driver.load_module(0, fake_image({90})));
  driver.launch(stream, driver.find_function(*module, "look", 0), {}, std::span<const std::byte>());
  driver.synchronize(stream);
  EXPECT_EQ(seen, std::vector<std::size_t>{32});
}

TEST(CudaFakeDevice, OrdersTheDefaultStreamWithThoseThatJoinIt) {
  for (const bool joins : {true, false}) {
    const auto gives_right_result = [&](std::uint64_t seed) {
      TestDevices devices(seed);
      const Stream before = devices.driver().create_stream(0, joins), after = devices.driver().create_stream(0, joins);
      std::uint32_t* a = devices.buffer(1);
      std::uint32_t* b = devices.buffer(2);
      devices.mix(before, a, b);
      devices.mix(devices.driver().default_stream(0), b, a);
      devices.mix(after, a, b);
      const std::uint32_t b_wanted = mixed(2, mixed(1, 2));
      return devices.read(b)[0] == b_wanted && devices.read(a)[0] == mixed(mixed(1, 2), b_wanted);
    };
    EXPECT_EQ(is_caught(kSeeds, gives_right_result), !joins);
  }
}

TEST(CudaFakeDevice, WaitsForADefaultStreamWithAllThatJoinsIt) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TestDevices devices(seed);
    Driver& driver = devices.driver();
    const Stream joining = driver.create_stream(0, true);
    std::uint32_t* a = devices.buffer(1);
    std::vector<std::uint32_t> result(TestDevices::kCount);
    driver.copy(joining, result.data(), a, kBytes);
    driver.synchronize(driver.default_stream(0));
    EXPECT_EQ(result[0], 1u) << seed;
  }
}

TEST(CudaFakeDevice, AnEventStandsForWhatItsStreamWasGivenWhenRecorded) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TestDevices devices(seed);
    Driver& driver = devices.driver();
    const Stream first = driver.create_stream(0), second = driver.create_stream(0);
    const Event event = driver.create_event(0);
    EXPECT_TRUE(driver.is_done(event));  // never recorded
    driver.wait(first, event);
    std::uint32_t* a = devices.buffer(1);
    std::uint32_t* b = devices.buffer(2);
    devices.mix(first, a, a);
    driver.record(event, first);
    driver.wait(second, event);
    // Recorded again, and destroyed: the wait above refers to the event's earlier record.
    driver.record(event, second);
    while (!driver.is_done(event)) {
    }
    std::vector<std::uint32_t> result(TestDevices::kCount);
    driver.copy(second, result.data(), a, kBytes);
    driver.record(event, second);
    driver.synchronize(event);
    EXPECT_EQ(result[0], mixed(1, 1)) << seed;
    driver.destroy(event);
    devices.mix(second, b, a);
    EXPECT_EQ(devices.read(b)[0], mixed(2, mixed(1, 1))) << seed;
  }
}

TEST(CudaFakeDevice, FinishesWhatADestroyedStreamWasGiven) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TestDevices devices(seed);
    const Stream stream = devices.driver().create_stream(0);
    std::uint32_t* a = devices.buffer(1);
    devices.mix(stream, a, a);
    devices.driver().destroy(stream);
    EXPECT_EQ(devices.read(a)[0], mixed(1, 1)) << seed;
  }
}

TEST(CudaFakeDevice, CatchesAModuleUnloadedBeforeItsKernelRan) {
  EXPECT_TRUE(is_caught(kSeeds, [](std::uint64_t seed) {
    TestDevices devices(seed);
    Driver& driver = devices.driver();
    std::uint32_t* a = devices.buffer(1);
    const Module module = driver.load_module(0, fake_image({90}));
    driver.launch(driver.default_stream(0), driver.find_function(module, "mix", sizeof(MixArguments)), {},
                  MixArguments{a, a, TestDevices::kCount});
    driver.destroy(module);
    return devices.read(a)[0] == mixed(1, 1);
  }));
}

TEST(CudaFakeDevice, IsUsedByConcurrentThreads) {
  TestDevices devices(1, 2);
  std::vector<std::thread> threads;
  std::vector<std::uint32_t> results(4);
  for (std::size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      Driver& driver = devices.driver();
      const int device = static_cast<int>(i % 2);
      const CurrentGuard guard(driver, driver.create_stream(device));
      auto* memory = static_cast<std::uint32_t*>(driver.allocate(guard.stream(), kBytes));
      driver.fill(guard.stream(), memory, 0, kBytes);
      for (int step = 0; step < 50; ++step) devices.mix(guard.stream(), memory, memory);
      std::vector<std::uint32_t> values(TestDevices::kCount);
      driver.copy(guard.stream(), values.data(), memory, kBytes);
      driver.synchronize(guard.stream());
      results[i] = values[0];
    });
  for (std::thread& thread : threads) thread.join();
  std::uint32_t wanted = 0;
  for (int step = 0; step < 50; ++step) wanted = mixed(wanted, wanted);
  EXPECT_EQ(results, std::vector<std::uint32_t>(4, wanted));
}

}  // namespace weft::cuda_fake_device_test
