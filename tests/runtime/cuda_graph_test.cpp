// Graphs on the fake device: launches, updates, and the memory that they share.

#include <gtest/gtest.h>

#include "tests/runtime/cuda_capture_host.h"

namespace weft::cuda_graph_test {

using namespace weft::cuda;
using Host = CaptureHost;

constexpr int kSeeds = 100;
constexpr std::size_t kBytes = TestDevices::kBytes;

TEST(CudaGraph, LaunchesOfOneExecutableFollowEachOther) {
  const auto gives_right_result = [](std::uint64_t seed, bool is_one) {
    Host host(seed);
    const Owner graph(host.driver, host.capture([&] {
      host.devices.mix(host.stream, host.a, host.b);
      host.devices.mix(host.stream, host.b, host.a);
    }));
    const Owner first(host.driver, host.driver.instantiate(*graph));
    const Owner second(host.driver, host.driver.instantiate(*graph));
    host.driver.launch(host.stream, *first);
    host.driver.launch(host.other, is_one ? *first : *second);
    const std::uint32_t a = mixed(1, 2), b = mixed(2, a);
    return host.devices.read(host.a)[0] == mixed(a, b);
  };
  EXPECT_FALSE(is_caught(kSeeds, [&](std::uint64_t seed) { return gives_right_result(seed, true); }));
  EXPECT_TRUE(is_caught(kSeeds, [&](std::uint64_t seed) { return gives_right_result(seed, false); }));
}

TEST(CudaGraph, UpdatesAnExecutableForWhatIsLaunchedFromThenOn) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Host host(seed);
    std::uint32_t* c = host.devices.buffer(3);
    const auto capture_for = [&](std::uint32_t* to, std::uint32_t* from) {
      return host.capture([&] { host.devices.mix(host.stream, to, from); });
    };
    const Owner first(host.driver, capture_for(host.a, host.b)), second(host.driver, capture_for(c, host.a));
    const Owner executable(host.driver, host.driver.instantiate(*first));
    host.driver.launch(host.stream, *executable);
    EXPECT_TRUE(host.driver.update(*executable, *second));
    host.driver.launch(host.stream, *executable);
    EXPECT_EQ(host.devices.read(host.a)[0], mixed(1, 2));
    EXPECT_EQ(host.devices.read(c)[0], mixed(3, mixed(1, 2)));
  }
}

TEST(CudaGraph, RefusesToUpdateWhatHasAnotherForm) {
  Host host;
  TestDevices& devices = host.devices;
  const Owner graph(host.driver, host.capture([&] {
    devices.mix(host.stream, host.a, host.b);
    host.driver.fill(host.stream, host.b, 0, kBytes);
  }));
  const Owner executable(host.driver, host.driver.instantiate(*graph));
  const auto refusal = [&](const std::function<void()>& queue) {
    const Owner other(host.driver, host.capture(queue));
    const Verdict verdict = host.driver.update(*executable, *other);
    return verdict ? std::string("updated") : verdict.reason();
  };
  EXPECT_EQ(refusal([&] { devices.mix(host.stream, host.a, host.b); }), "the graph's form changed: 1 nodes, not 2");
  EXPECT_EQ(refusal([&] {
              devices.mix(host.stream, host.a, host.b);
              devices.mix(host.stream, host.b, host.a);
            }),
            "node 1 is of another kind");
  EXPECT_EQ(refusal([&] {
              host.fork_to_other();
              devices.mix(host.stream, host.a, host.b);
              host.driver.fill(host.other, host.b, 0, kBytes);
              host.join_other();
            }),
            "the graph's form changed: what node 1 waits for");
  EXPECT_EQ(refusal([&] {
              devices.mix(host.stream, host.a, host.b, "mix_unchecked");
              host.driver.fill(host.stream, host.a, 7, kBytes / 2);
            }),
            "updated");
  // A refusal changes nothing.
  const Owner memory(host.driver,
                     host.capture([&] { host.driver.release(host.stream, host.driver.allocate(host.stream, 8)); }));
  const Owner with_memory(host.driver, host.driver.instantiate(*memory));
  EXPECT_EQ(host.driver.update(*with_memory, *memory).reason(),
            "node 0 allocates or releases memory, which cannot be updated");
  EXPECT_EQ(refusal([&] { devices.mix(host.stream, host.b, host.b); }), "the graph's form changed: 1 nodes, not 2");
  host.driver.launch(host.stream, *executable);
  EXPECT_EQ(devices.read(host.a)[0], 0x07070707u);
  EXPECT_EQ(devices.read(host.b)[0], 2u);
}

// Graphs of several sizes that write one arena, as replay's do.
TEST(CudaGraph, GraphsShareAnArenaIfTheirLaunchesAreOrdered) {
  const auto gives_right_result = [](std::uint64_t seed, bool is_ordered) {
    Host host(seed);
    std::uint32_t* arena = host.devices.buffer(0);
    std::uint32_t* results[] = {host.devices.buffer(0), host.devices.buffer(0)};
    std::vector<Owner<ExecutableObject>> sizes;
    for (const std::size_t i : {0u, 1u}) {
      const Owner graph(host.driver, host.capture([&] {
        host.driver.copy(host.stream, arena, i == 0 ? host.a : host.b, kBytes);
        host.devices.mix(host.stream, results[i], arena);
      }));
      sizes.emplace_back(host.driver, host.driver.instantiate(*graph));
    }
    host.driver.launch(host.stream, *sizes[0]);
    if (is_ordered) host.fork_to_other();
    host.driver.launch(host.other, *sizes[1]);
    return host.devices.read(results[0])[0] == mixed(0, 1) && host.devices.read(results[1])[0] == mixed(0, 2);
  };
  EXPECT_FALSE(is_caught(kSeeds, [&](std::uint64_t seed) { return gives_right_result(seed, true); }));
  EXPECT_TRUE(is_caught(kSeeds, [&](std::uint64_t seed) { return gives_right_result(seed, false); }));
}

// Memory that captures allocate is one pool: graphs that do not run at once need the largest one's, not the sum.
TEST(CudaGraph, GraphsShareThePoolOfMemoryAllocatedInThem) {
  Host host;
  constexpr std::size_t kSmall = 300 << 10, kLarge = 500 << 10;
  const auto scratch_graph = [&](std::size_t bytes, std::uint32_t* result) {
    return host.capture([&] {
      auto* scratch = static_cast<std::uint32_t*>(host.driver.allocate(host.stream, bytes));
      host.driver.fill(host.stream, scratch, 0, bytes);
      host.devices.mix(host.stream, result, scratch);
      host.driver.release(host.stream, scratch);
    });
  };
  const Owner small(host.driver, scratch_graph(kSmall, host.a)), large(host.driver, scratch_graph(kLarge, host.b));
  const Owner first(host.driver, host.driver.instantiate(*small)), second(host.driver, host.driver.instantiate(*large));
  expect_device_error([&] { host.driver.instantiate(*small); },
                      {"CUDA_ERROR_NOT_SUPPORTED", "one executable at a time"});
  EXPECT_EQ(host.driver.graph_memory_bytes(0), 0u);
  for (int launch = 0; launch < 2; ++launch) {
    host.driver.launch(host.stream, *first);
    host.driver.launch(host.stream, *second);
  }
  host.driver.synchronize(host.stream);
  EXPECT_EQ(host.driver.graph_memory_bytes(0), kLarge);
  EXPECT_EQ(host.devices.read(host.a)[0], mixed(mixed(1, 0), 0));
  // Memory that is reserved for graphs is not free for others, and a graph finds no memory that others took.
  expect_device_error([&] { host.driver.allocate(host.stream, 600 << 10); }, {"CUDA_ERROR_OUT_OF_MEMORY"});
  Host full;
  const Owner graph(full.driver,
                    full.capture([&] { full.driver.release(full.stream, full.driver.allocate(full.stream, kLarge)); }));
  const Owner executable(full.driver, full.driver.instantiate(*graph));
  full.driver.allocate(full.driver.default_stream(0), 700 << 10);
  expect_device_error([&] { full.driver.launch(full.stream, *executable); },
                      {"cuGraphLaunch: CUDA_ERROR_OUT_OF_MEMORY", "graphs need 512000 bytes", "bytes free of 1048576"});
  EXPECT_EQ(full.driver.last_error(0), "");
}

// Data of one launch in the graph's memory does not exist in the next launch.
TEST(CudaGraph, MemoryOfAGraphIsUndefinedAtEachLaunch) {
  Host host;
  const Owner graph(host.driver, host.capture([&] {
    auto* scratch = static_cast<std::uint32_t*>(host.driver.allocate(host.stream, kBytes));
    host.devices.mix(host.stream, host.a, scratch);
    host.driver.fill(host.stream, scratch, 0, kBytes);
    host.driver.release(host.stream, scratch);
  }));
  const Owner executable(host.driver, host.driver.instantiate(*graph));
  for (std::uint32_t wanted = 1, launch = 0; launch < 2; ++launch) {
    host.driver.launch(host.stream, *executable);
    wanted = mixed(wanted, 0xcdcdcdcdu);
    EXPECT_EQ(host.devices.read(host.a)[0], wanted);
  }
}

TEST(CudaGraph, DestroyedGraphsFinishWhatWasLaunched) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Host host(seed);
    const CapturedGraph graph = host.capture([&] {
      auto* scratch = static_cast<std::uint32_t*>(host.driver.allocate(host.stream, kBytes));
      host.driver.fill(host.stream, scratch, 0, kBytes);
      host.devices.mix(host.stream, host.a, scratch);
      host.driver.release(host.stream, scratch);
    });
    const ExecutableGraph executable = host.driver.instantiate(graph);
    host.driver.launch(host.stream, executable);
    host.driver.destroy(executable);
    host.driver.destroy(graph);
    EXPECT_EQ(host.devices.read(host.a)[0], mixed(1, 0));
    expect_device_error([&] { host.driver.launch(host.stream, executable); },
                        {"cuGraphLaunch", "its executable graph was destroyed"});
    expect_device_error([&] { host.driver.instantiate(graph); }, {"its graph was destroyed"});
  }
}

// Two nodes, whose executable takes 2 x 1000 bytes when it is created, and 2 x 4000 more when it is launched.
class LaunchMemory {
 public:
  explicit LaunchMemory(std::size_t memory_bytes = std::size_t{1} << 20) : devices_(settings(memory_bytes)) {
    const CurrentGuard guard(driver, stream);
    driver.begin_capture(stream);
    devices_.mix(stream, a_, b_);
    devices_.mix(stream, b_, a_);
    graph_ = driver.end_capture(stream);
  }
  ExecutableGraph executable() { return driver.instantiate(graph_); }
  std::size_t taken() { return driver.memory(0).total - driver.memory(0).free - 2 * kBytes; }
  std::uint32_t first_of_a() { return devices_.read(a_)[0]; }

 private:
  static FakeSettings settings(std::size_t memory_bytes) {
    FakeSettings settings = test_device_settings();
    settings.memory_bytes = memory_bytes;
    settings.node_bytes = 1000;
    settings.uploaded_node_bytes = 4000;
    return settings;
  }
  TestDevices devices_;
  std::uint32_t* a_ = devices_.buffer(1);
  std::uint32_t* b_ = devices_.buffer(2);
  CapturedGraph graph_ = {};

 public:
  Driver& driver = devices_.driver();
  const Stream stream = driver.create_stream(0);
};

TEST(CudaGraph, TakesForItsFirstLaunchWhatAnUploadTakesBefore) {
  LaunchMemory host;
  const CurrentGuard guard(host.driver, host.stream);
  const ExecutableGraph lazy = host.executable();
  EXPECT_EQ(host.taken(), 2000u);
  host.driver.launch(host.stream, lazy);
  EXPECT_EQ(host.taken(), 10000u);
  host.driver.destroy(lazy);
  EXPECT_EQ(host.taken(), 0u);
  const ExecutableGraph uploaded = host.executable();
  host.driver.upload(host.stream, uploaded);
  EXPECT_EQ(host.taken(), 10000u);
  for (int launch = 0; launch < 2; ++launch) host.driver.launch(host.stream, uploaded);
  EXPECT_EQ(host.taken(), 10000u);
  host.driver.destroy(uploaded);
  EXPECT_EQ(host.taken(), 0u);
  std::uint32_t a = 1, b = 2;
  for (int launch = 0; launch < 3; ++launch) {
    a = mixed(a, b);
    b = mixed(b, a);
  }
  EXPECT_EQ(host.first_of_a(), a);
}

TEST(CudaGraph, IsNotUploadedWhereThereIsNoMemoryAndNotInACapture) {
  LaunchMemory full(8192);
  const CurrentGuard guard(full.driver, full.stream);
  const ExecutableGraph executable = full.executable();
  for (const bool uploads : {true, false})
    expect_device_error(
        [&] { uploads ? full.driver.upload(full.stream, executable) : full.driver.launch(full.stream, executable); },
        {uploads ? "cuGraphUpload" : "cuGraphLaunch", "CUDA_ERROR_OUT_OF_MEMORY", "2 nodes takes 8000 bytes"});
  LaunchMemory host;
  const CurrentGuard other(host.driver, host.stream);
  const ExecutableGraph fits = host.executable();
  host.driver.begin_capture(host.stream);
  expect_device_error([&] { host.driver.upload(host.stream, fits); }, {"cuGraphUpload", "in a capture"});
  host.driver.abandon_capture(host.stream);
}

TEST(CudaGraph, AGraphOfAnotherDeviceIsRefused) {
  TestDevices devices(1, 2);
  Driver& driver = devices.driver();
  const Stream stream = driver.create_stream(0), other = driver.create_stream(1);
  driver.begin_capture(stream);
  const Owner graph(driver, driver.end_capture(stream));
  const Owner executable(driver, driver.instantiate(*graph));
  const CurrentGuard guard(driver, other);
  expect_device_error([&] { driver.launch(other, *executable); },
                      {"[fake-cuda:1] cuGraphLaunch: its graph is of fake-cuda:0"});
  expect_device_error([&] { driver.upload(other, *executable); },
                      {"[fake-cuda:1] cuGraphUpload: its graph is of fake-cuda:0"});
}

}  // namespace weft::cuda_graph_test
