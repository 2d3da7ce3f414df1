// Captures on the fake device: allowed calls, calls that end a capture, and that its streams work afterwards.

#include <thread>

#include <gtest/gtest.h>

#include "tests/runtime/cuda_capture_host.h"

namespace weft::cuda_capture_test {

using namespace weft::cuda;
using Host = CaptureHost;

constexpr int kSeeds = 100;
constexpr std::size_t kBytes = TestDevices::kBytes;

// After an error in a capture: its streams are in none, and work.
void expect_usable(CaptureHost& host) {
  EXPECT_FALSE(host.driver.is_capturing(host.stream));
  EXPECT_FALSE(host.driver.is_capturing(host.other));
  const Owner graph(host.driver, host.capture([&] { host.devices.mix(host.stream, host.b, host.b); }));
  EXPECT_EQ(host.driver.node_count(*graph), 1u);
  EXPECT_EQ(host.devices.read(host.b)[0], 2u);
}

// The words of an error that the host's call threw, and of the one that then ended the capture.
#define EXPECT_ENDED(host, call_words, end_words, ...)                                           \
  do {                                                                                           \
    const std::string ended = (host).ending(__VA_ARGS__);                                        \
    EXPECT_NE((host).thrown.find(call_words), std::string::npos) << "thrown: " << (host).thrown; \
    EXPECT_NE(ended.find(end_words), std::string::npos) << "ended with: " << ended;              \
    expect_usable(host);                                                                         \
  } while (false)

TEST(CudaCapture, KeepsWorkInsteadOfRunningIt) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Host host(seed);
    const CapturedGraph graph = host.capture([&] {
      EXPECT_TRUE(host.driver.is_capturing(host.stream));
      host.devices.mix(host.stream, host.a, host.b);
      host.devices.mix(host.stream, host.b, host.a);
    });
    EXPECT_EQ(host.driver.node_count(graph), 2u);
    EXPECT_EQ(host.devices.read(host.a)[0], 1u);
    const Owner executable(host.driver, host.driver.instantiate(graph));
    host.driver.destroy(graph);
    std::uint32_t a = 1, b = 2;
    for (int launch = 0; launch < 3; ++launch) {
      host.driver.launch(host.stream, *executable);
      a = mixed(a, b);
      b = mixed(b, a);
    }
    EXPECT_EQ(host.devices.read(host.a)[0], a);
    EXPECT_EQ(host.devices.read(host.b)[0], b);
  }
}

TEST(CudaCapture, ForksAndJoinsByEvents) {
  const auto gives_right_result = [](std::uint64_t seed, bool waits) {
    Host host(seed);
    std::uint32_t* c = host.devices.buffer(3);
    const Owner graph(host.driver, host.capture([&] {
      host.devices.mix(host.stream, host.a, host.a);
      host.fork_to_other();
      EXPECT_TRUE(host.driver.is_capturing(host.other));
      host.devices.mix(host.other, host.b, host.a);
      host.devices.mix(host.stream, c, waits ? host.a : host.b);
      host.join_other();
      host.devices.mix(host.stream, c, host.b);
    }));
    EXPECT_FALSE(host.driver.is_capturing(host.other));
    const Owner executable(host.driver, host.driver.instantiate(*graph));
    host.driver.launch(host.stream, *executable);
    const std::uint32_t a = mixed(1, 1), b = mixed(2, a);
    return host.devices.read(c)[0] == mixed(mixed(3, waits ? a : 2), b);
  };
  EXPECT_FALSE(is_caught(kSeeds, [&](std::uint64_t seed) { return gives_right_result(seed, true); }));
  // A read of b in parallel to the other branch, which writes it, may see it before or after.
  EXPECT_TRUE(is_caught(kSeeds, [&](std::uint64_t seed) { return gives_right_result(seed, false); }));
}

TEST(CudaCapture, RefusesWorkThatIsNotJoined) {
  Host host;
  EXPECT_ENDED(host, "", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", [&] {
    host.devices.mix(host.stream, host.a, host.b);
    host.fork_to_other();
    host.devices.mix(host.other, host.b, host.a);
  });
}

TEST(CudaCapture, RefusesAHostThatWaitsInside) {
  Host host;
  const auto invalid = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, failed due to a previous error in capture: the host";
  EXPECT_ENDED(host, "cuStreamSynchronize: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", invalid,
               [&] { host.driver.synchronize(host.stream); });
  EXPECT_ENDED(host, "cuCtxSynchronize: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", invalid,
               [&] { host.driver.synchronize_device(0); });
  const auto recorded = [&] {
    host.driver.record(host.fork, host.stream);
    host.driver.synchronize(host.fork);
  };
  EXPECT_ENDED(host, "cuEventSynchronize: CUDA_ERROR_CAPTURED_EVENT", invalid, recorded);
  EXPECT_ENDED(host, "cuEventQuery: CUDA_ERROR_CAPTURED_EVENT", invalid, [&] {
    host.driver.record(host.fork, host.stream);
    host.driver.is_done(host.fork);
  });
  // A stream that is in no capture may be waited for.
  const Owner graph(host.driver, host.capture([&] { host.driver.synchronize(host.other); }));
}

TEST(CudaCapture, AnswersNothingElseOnceItIsInvalid) {
  Host host;
  host.driver.begin_capture(host.stream);
  EXPECT_THROW(host.driver.synchronize(host.stream), CudaError);
  expect_device_error([&] { host.devices.mix(host.stream, host.a, host.b); },
                      {"cuLaunchKernel: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the host waits for a stream"});
  host.driver.abandon_capture(host.stream);
  expect_usable(host);
}

TEST(CudaCapture, RefusesToMixWithWorkOutside) {
  Host host;
  // An event from outside.
  host.driver.record(host.join, host.other);
  EXPECT_ENDED(host, "cuStreamWaitEvent: CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "recorded outside",
               [&] { host.driver.wait(host.stream, host.join); });
  // Another capture's event.
  const Stream third = host.driver.create_stream(0);
  host.driver.begin_capture(third);
  host.driver.record(host.fork, third);
  const std::string ended = host.ending([&] { host.driver.wait(host.stream, host.fork); });
  EXPECT_NE(host.thrown.find("cuStreamWaitEvent: CUDA_ERROR_STREAM_CAPTURE_MERGE"), std::string::npos) << host.thrown;
  EXPECT_NE(ended.find("it waits for an event of another capture"), std::string::npos) << ended;
  expect_device_error([&] { host.driver.end_capture(third); }, {"INVALIDATED", "another capture waits"});
  // An event of a capture that has ended.
  expect_device_error([&] { host.driver.wait(host.stream, host.fork); }, {"CUDA_ERROR_CAPTURED_EVENT", "has ended"});
  // The default stream, which waits for streams that join it.
  const Stream joining = host.driver.create_stream(0, true);
  host.driver.begin_capture(joining);
  expect_device_error([&] { host.devices.mix(host.driver.default_stream(0), host.a, host.b); },
                      {"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"});
  expect_device_error([&] { host.driver.end_capture(joining); }, {"INVALIDATED", "the default stream is used"});
  expect_usable(host);
  // It is free during the capture of a stream that does not join it.
  const Owner graph(host.driver,
                    host.capture([&] { host.driver.fill(host.driver.default_stream(0), host.a, 0, kBytes); }));
  EXPECT_EQ(host.devices.read(host.a)[0], 0u);
}

TEST(CudaCapture, BeginsAndEndsWhereItMay) {
  Host host;
  expect_device_error([&] { host.driver.begin_capture(host.driver.default_stream(0)); },
                      {"cuStreamBeginCapture: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "a default stream"});
  expect_device_error([&] { host.driver.end_capture(host.stream); }, {"cuStreamEndCapture", "in no capture"});
  EXPECT_ENDED(host, "CUDA_ERROR_ILLEGAL_STATE", "INVALIDATED", [&] { host.driver.begin_capture(host.stream); });
  EXPECT_ENDED(host, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "INVALIDATED", [&] {
    host.fork_to_other();
    host.driver.end_capture(host.other);
  });
  EXPECT_ENDED(host, "cuStreamDestroy: its stream captures", "", [&] { host.driver.destroy(host.stream); });
  EXPECT_ENDED(host, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "INVALIDATED", [&] {
    std::string elsewhere;
    std::thread([&] { elsewhere = message_of<DeviceError>([&] { host.driver.end_capture(host.stream); }); }).join();
    throw CudaError(Status::capture_wrong_thread, elsewhere);
  });
}

TEST(CudaCapture, LoadsNoCodeOnItsThread) {
  Host host;
  EXPECT_ENDED(host, "cuModuleLoadData: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "device code is loaded in a capture",
               [&] { host.driver.load_module(0, fake_image({90})); });
  const Owner graph(host.driver, host.capture([&] {
    std::thread([&] { host.driver.destroy(host.driver.load_module(0, fake_image({90}))); }).join();
  }));
}

TEST(CudaCapture, EndsWhenSomethingThrowsInside) {
  Host host;
  EXPECT_THROW(
      {
        CaptureScope capture(host.driver, host.stream);
        host.fork_to_other();
        fail_user("the request is wrong");
      },
      UserError);
  expect_usable(host);
  CaptureScope capture(host.driver, host.stream);
  host.devices.mix(host.stream, host.a, host.b);
  const Owner graph = capture.end();
  EXPECT_EQ(host.driver.node_count(*graph), 1u);
}

TEST(CudaCapture, EndsWhenItsEndIsRefused) {
  Host host(1, 2);
  {
    CaptureScope capture(host.driver, host.stream);
    host.driver.make_current(host.driver.default_stream(1));
    expect_device_error([&] { capture.end(); }, {"cuStreamEndCapture", "current is fake-cuda:1"});
  }
  host.driver.make_current(host.driver.default_stream(0));
  expect_usable(host);
}

TEST(CudaCapture, RunsOutOfMemoryInTheMiddle) {
  Host host;
  EXPECT_ENDED(host, "cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY", "no memory for what a capture allocates", [&] {
    host.devices.mix(host.stream, host.a, host.b);
    host.driver.allocate(host.stream, 1 << 20);
  });
  EXPECT_NE(host.thrown.find("asked 1048576 bytes, 1048384 bytes free of 1048576"), std::string::npos) << host.thrown;
  EXPECT_EQ(host.driver.last_error(0), "");
  EXPECT_EQ(host.devices.read(host.a)[0], 1u);
}

TEST(CudaCapture, SeesAKernelFailMeanwhile) {
  // Queued before the capture, and run during it or when it is over.
  EXPECT_TRUE(is_caught(kSeeds, [](std::uint64_t seed) {
    Host host(seed);
    host.devices.mix(host.other, host.a, host.a, "fail");
    try {
      CaptureScope capture(host.driver, host.stream);
      for (int i = 0; i < 8; ++i) {
        host.devices.mix(host.stream, host.a, host.b);
        host.driver.is_done(host.join);
      }
      capture.end();
      return true;
    } catch (const CudaError& error) {
      EXPECT_EQ(error.status(), Status::launch_failed);
      EXPECT_NE(host.driver.last_error(0).find("kernel fail"), std::string::npos);
      host.driver.reset(0);
      const Stream fresh = host.driver.create_stream(0);
      EXPECT_FALSE(host.driver.is_capturing(fresh));
      EXPECT_EQ(host.devices.read(host.devices.buffer(4))[0], 4u);
      throw;
    }
  }));
  // Captured: it fails at the first launch, not before.
  Host host;
  const Owner graph(host.driver, host.capture([&] { host.devices.mix(host.stream, host.a, host.b, "fail"); }));
  const Owner executable(host.driver, host.driver.instantiate(*graph));
  EXPECT_EQ(host.devices.read(host.a)[0], 1u);
  host.driver.launch(host.stream, *executable);
  expect_device_error([&] { host.driver.synchronize(host.stream); }, {"CUDA_ERROR_LAUNCH_FAILED", "kernel fail"});
}

TEST(CudaCapture, RefusedCallsMakeItInvalid) {
  Host host;
  EXPECT_ENDED(host, "given 2048 threads", "given 2048 threads", [&] {
    host.driver.launch(host.stream, host.devices.function("mix"), {.threads = {2048, 1, 1}},
                       MixArguments{host.a, host.b, 1});
  });
  EXPECT_ENDED(host, "must have been allocated in it", "must have been allocated in it",
               [&] { host.driver.release(host.stream, host.a); });
  EXPECT_ENDED(host, "", "is not released in it", [&] { host.driver.allocate(host.stream, 4); });
  const Owner graph(host.driver, host.capture([] {}));
  const Owner executable(host.driver, host.driver.instantiate(*graph));
  EXPECT_ENDED(host, "launched into a capture", "launched into a capture",
               [&] { host.driver.launch(host.stream, *executable); });
}

}  // namespace weft::cuda_capture_test
