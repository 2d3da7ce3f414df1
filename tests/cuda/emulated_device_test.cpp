// Kernels in the order of streams: two of the family one after the other, alone, over two streams and in a captured
// graph, on a device that runs them as late and in as unusual an order as streams and events permit.

#include "tests/cuda/emulated_device.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/group_launch.h"
#include "runtime/cuda/current_guard.h"
#include "tests/thrown_message.h"

namespace weft::emulated_device_test {

using namespace cuda;

constexpr std::uint32_t kRows = 3, kColumns = 256, kGroup = 128, kGroups = kColumns / kGroup;
constexpr std::size_t kElements = kRows * kColumns;

// rms_norm of f32 rows, then codes of int8 per group.
struct Chain {
  explicit Chain(std::uint64_t seed) : driver(open_emulated_device(seed)), stream(driver->create_stream(0)) {
    const Module module = driver->load_module(0, fake_image({90}));
    norm = driver->find_function(module, "rms_norm_f32_plain_reference", sizeof(RmsNormArguments));
    quant = driver->find_function(module, "per_token_group_quant_f32_i8_128", sizeof(PerTokenGroupQuantArguments));
    x = driver->allocate(stream, kElements * 4);
    normal = driver->allocate(stream, kElements * 4);
    codes = driver->allocate(stream, kElements);
    scales = driver->allocate(stream, kRows * kGroups * 4);
  }

  void bring(const std::vector<float>& values) { driver->copy(stream, x, values.data(), kElements * 4); }
  void normalize(Stream on) {
    const RmsNormArguments arguments{
        .x = x, .output = normal, .epsilon = 1e-6f, .columns = kColumns, .variance_columns = kColumns};
    driver->launch(on, norm, {.blocks = {kRows, 1, 1}, .threads = {256, 1, 1}}, arguments);
  }
  void quantize(Stream on) {
    PerTokenGroupQuantArguments arguments{.x = normal,
                                          .codes = codes,
                                          .places = {static_cast<float*>(scales), kGroups, 1},
                                          .rows = kRows,
                                          .columns = kColumns};
    const LaunchShape shape =
        plan_groups("per_token_group_quant", {.rows = kRows, .groups = kGroups, .group_size = kGroup}, arguments.places,
                    arguments.order);
    driver->launch(on, quant, {.blocks = {shape.blocks, 1, 1}, .threads = {shape.threads, 1, 1}}, arguments);
  }
  std::vector<std::int8_t> codes_now() {
    std::vector<std::int8_t> now(kElements);
    driver->copy(stream, now.data(), codes, kElements);
    driver->synchronize(stream);
    return now;
  }

  std::unique_ptr<Driver> driver;
  Stream stream;
  Function norm, quant;
  void *x, *normal, *codes, *scales;
};

// Rows of one magnitude except for one element in each group, so that codes are the same for every norm.
std::vector<float> rows_with(float peak) {
  std::vector<float> x(kElements, 1.0f);
  for (std::size_t i = 0; i < kElements; i += kGroup) x[i] = peak;
  return x;
}
std::vector<std::int8_t> codes_of(float peak) {
  std::vector<std::int8_t> codes(kElements, static_cast<std::int8_t>(std::nearbyint(127 / peak)));
  for (std::size_t i = 0; i < kElements; i += kGroup) codes[i] = 127;
  return codes;
}

TEST(EmulatedDevice, RunsKernelsInTheOrderOfTheirStream) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Chain chain(seed);
    const std::vector<float> x = rows_with(4);
    chain.bring(x);
    chain.normalize(chain.stream);
    chain.quantize(chain.stream);
    EXPECT_EQ(chain.codes_now(), codes_of(4));
  }
}

// How many of some seeds give the right codes when the second kernel is on another stream.
int right_over_two_streams(bool has_event, int seeds) {
  int right = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    Chain chain(static_cast<std::uint64_t>(seed));
    Driver& driver = *chain.driver;
    const std::vector<float> x = rows_with(4);
    driver.fill(chain.stream, chain.normal, 0, kElements * 4);
    driver.synchronize(chain.stream);
    const Stream second = driver.create_stream(0);
    const Event normalized = driver.create_event(0), quantized = driver.create_event(0);
    chain.bring(x);
    chain.normalize(chain.stream);
    driver.record(normalized, chain.stream);
    if (has_event) driver.wait(second, normalized);
    chain.quantize(second);
    driver.record(quantized, second);
    driver.wait(chain.stream, quantized);
    right += chain.codes_now() == codes_of(4) ? 1 : 0;
  }
  return right;
}

TEST(EmulatedDevice, ShowsAMissingEventBetweenKernels) {
  EXPECT_EQ(right_over_two_streams(true, 20), 20);
  EXPECT_LT(right_over_two_streams(false, 20), 20);
}

TEST(EmulatedDevice, ReplaysACapturedChainOnWhatLiesThere) {
  Chain chain(3);
  Driver& driver = *chain.driver;
  driver.make_current(chain.stream);
  CaptureScope capture(driver, chain.stream);
  chain.normalize(chain.stream);
  chain.quantize(chain.stream);
  const auto graph = capture.end();
  const ExecutableGraph executable = driver.instantiate(*graph);
  for (const float peak : {2.0f, 4.0f, 8.0f}) {
    const std::vector<float> x = rows_with(peak);
    chain.bring(x);
    driver.launch(chain.stream, executable);
    EXPECT_EQ(chain.codes_now(), codes_of(peak));
  }
}

TEST(EmulatedDevice, NamesTheKernelThatTouchesWhatIsNotItsOwn) {
  Chain chain(1);
  std::vector<float> of_the_host(kElements);
  chain.x = of_the_host.data();
  chain.normalize(chain.stream);
  const std::string message = message_of<DeviceError>([&] { chain.driver->synchronize(chain.stream); });
  EXPECT_NE(message.find("rms_norm_f32_plain_reference"), std::string::npos) << message;
  EXPECT_NE(message.find("memory that was not given to it"), std::string::npos) << message;
}

}  // namespace weft::emulated_device_test
