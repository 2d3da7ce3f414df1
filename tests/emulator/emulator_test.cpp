#include "emulator/emulator.h"

#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/cuda/device/matrix.cuh"
#include "tests/thrown_message.h"

namespace weft::emulator_test {

using namespace cuda;

struct Arguments {
  const float* x = nullptr;
  float* y = nullptr;
  std::uint32_t count = 0;
};

// A launch of a body written here: memory for 256 numbers in, 256 out.
struct Bench {
  std::array<float, 256> x;
  std::array<float, 256> y = {};
  Bench() { std::iota(x.begin(), x.end(), 0.0f); }

  void run(void (*body)(const void*), LaunchShape shape, EmulatorSettings settings = {}) {
    MemoryMap memory;
    memory.allow_reading("x", x.data(), sizeof x);
    memory.allow_writing("y", y.data(), sizeof y);
    const Arguments arguments{x.data(), y.data(), 256};
    Emulator emulator(settings);
    emulator.run({"kernel", body, 1024, sizeof arguments}, shape, &arguments, memory);
    traffic = emulator.traffic();
  }
  std::string fault(void (*body)(const void*), LaunchShape shape, EmulatorSettings settings = {}) {
    return message_of<DeviceError>([&] { run(body, shape, settings); });
  }
  std::vector<AccessTraffic> traffic;
};

const Arguments& given(const void* arguments) { return *static_cast<const Arguments*>(arguments); }

void reversed_in_block(const void* arguments) {
  WEFT_SHARED(float, kept, 64);
  const std::uint32_t i = thread_index();
  kept[i] = load(given(arguments).x + block_index() * 64 + i);
  wait_for_block();
  store(given(arguments).y + block_index() * 64 + i, static_cast<float>(kept[63 - i]));
}

TEST(EmulatorOfThreads, RunsAllOfEveryBlockInAnyOrder) {
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward, ThreadOrder::random}) {
    Bench bench;
    bench.run(reversed_in_block, {.blocks = 4, .threads = 64}, {.order = order, .seed = 7});
    for (int i = 0; i < 256; ++i) EXPECT_EQ(bench.y[i], static_cast<float>(i / 64 * 64 + 63 - i % 64));
  }
}

TEST(EmulatorOfThreads, ExchangesBetweenLanes) {
  Bench bench;
  bench.run(
      [](const void* arguments) {
        float sum = load(given(arguments).x + thread_index());
        for (unsigned distance = 16; distance > 0; distance /= 2) sum += exchange(sum, distance);
        store(given(arguments).y + thread_index(), sum);
      },
      {.threads = 64}, {.order = ThreadOrder::random});
  EXPECT_EQ(bench.y[0], 496);
  EXPECT_EQ(bench.y[31], 496);
  EXPECT_EQ(bench.y[32], 496 + 32 * 32);
}

TEST(EmulatorOfThreads, FindsAMissingBarrierInWhateverOrder) {
  const auto body = [](const void* arguments) {
    WEFT_SHARED(float, kept, 64);
    const std::uint32_t i = thread_index();
    kept[i] = load(given(arguments).x + i);
    store(given(arguments).y + i, static_cast<float>(kept[63 - i]));
  };
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward, ThreadOrder::random}) {
    const std::string fault = Bench().fault(body, {.threads = 64}, {.order = order});
    EXPECT_TRUE(fault.find("which no thread wrote") != std::string::npos ||
                fault.find("with no barrier between") != std::string::npos)
        << fault;
  }
}

TEST(EmulatorOfThreads, FindsAWriteThatOvertakesAReader) {
  const auto body = [](const void* arguments) {
    WEFT_SHARED(float, kept, 64);
    const std::uint32_t i = thread_index();
    kept[i] = load(given(arguments).x + i);
    wait_for_block();
    const float other = kept[63 - i];
    kept[i] = other;  // another thread still needs it
    store(given(arguments).y + i, other);
  };
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::backward, ThreadOrder::random}) {
    const std::string fault = Bench().fault(body, {.threads = 64}, {.order = order});
    EXPECT_NE(fault.find("with no barrier between"), std::string::npos) << fault;
  }
}

TEST(EmulatorOfThreads, FindsAWriteOfWhatAnotherThreadReadBefore) {
  const auto body = [](const void* arguments) {
    float* y = given(arguments).y;
    const float next = load(y + thread_index() + 1);
    store(y + thread_index(), next);
  };
  const std::string fault = Bench().fault(body, {.threads = 64});
  EXPECT_NE(fault.find("writes byte 4 of y, which another thread read in this launch"), std::string::npos) << fault;
  const auto shared = [](const void* arguments) {
    float* y = given(arguments).y;
    const float first = load(y);
    if (thread_index() == 63) store(y, first);
  };
  EXPECT_NE(Bench().fault(shared, {.threads = 64}).find("writes byte 0 of y"), std::string::npos);
}

TEST(EmulatorOfThreads, OrdersAWarpByItsOwnBarrier) {
  const auto body = [](const void* arguments) {
    WEFT_SHARED(float, kept, 32);
    const std::uint32_t i = thread_index();
    kept[i] = load(given(arguments).x + i);
    wait_for_warp();
    store(given(arguments).y + i, static_cast<float>(kept[31 - i]));
  };
  Bench bench;
  bench.run(body, {.threads = 32});
  EXPECT_EQ(bench.y[0], 31);
}

TEST(EmulatorOfThreads, FindsSharedMemoryThatNobodyWrote) {
  const auto body = [](const void* arguments) {
    WEFT_SHARED(float, kept, 64);
    if (thread_index() < 32) kept[thread_index()] = 1;
    wait_for_block();
    store(given(arguments).y + thread_index(), static_cast<float>(kept[thread_index()]));
  };
  const std::string fault = Bench().fault(body, {.threads = 64});
  EXPECT_NE(fault.find(", which no thread wrote"), std::string::npos) << fault;
}

TEST(EmulatorOfThreads, StartsEveryBlockWithFreshSharedMemory) {
  const auto body = [](const void* arguments) {
    WEFT_SHARED(float, kept, 32);
    if (block_index() == 0) kept[thread_index()] = 1;
    wait_for_block();
    store(given(arguments).y + block_index() * 32 + thread_index(), static_cast<float>(kept[thread_index()]));
  };
  EXPECT_NE(Bench().fault(body, {.blocks = 2, .threads = 32}).find("block (1, 0)"), std::string::npos);
}

TEST(EmulatorOfThreads, FindsDivergence) {
  const auto at_another_barrier = [](const void*) {
    if (thread_index() < 16) {
      wait_for_block();
    } else {
      wait_for_block();
    }
  };
  EXPECT_NE(Bench().fault(at_another_barrier, {.threads = 32}).find("reaches a barrier while others wait"),
            std::string::npos);
  const auto half_in_a_shuffle = [](const void* arguments) {
    float value = 1;
    if (thread_index() < 16) value = exchange(value, 8);
    wait_for_block();
    store(given(arguments).y + thread_index(), value);
  };
  const std::string fault = Bench().fault(half_in_a_shuffle, {.threads = 32});
  EXPECT_NE(fault.find("never ends"), std::string::npos) << fault;
  EXPECT_NE(fault.find("16 threads (first 0) wait in the exchange"), std::string::npos) << fault;
  EXPECT_NE(fault.find("16 threads (first 16) wait at the barrier"), std::string::npos) << fault;
}

TEST(EmulatorOfThreads, FindsBadMasks) {
  const auto without_itself = [](const void*) { warp_barrier(0x0000ffffu, Site::current()); };
  EXPECT_NE(Bench().fault(without_itself, {.threads = 32}).find("without itself"), std::string::npos);
  const auto lane_gone = [](const void*) {
    if (thread_index() == 5) return;
    warp_barrier(0xffffffffu, Site::current());
  };
  const std::string fault = Bench().fault(lane_gone, {.threads = 32}, {.order = ThreadOrder::backward});
  EXPECT_TRUE(fault.find("never ends") != std::string::npos || fault.find("lane 5 has ended") != std::string::npos)
      << fault;
  const auto outside = [](const void*) {
    if (thread_index() < 16) shuffle(0x0000ffffu, 1, 20, Site::current());
  };
  EXPECT_NE(Bench().fault(outside, {.threads = 32}).find("reads lane 20, which takes no part"), std::string::npos);
}

// Small whole numbers: every order of their sums is exact.
float of_a(std::uint32_t row, std::uint32_t column) { return static_cast<float>((row * 7 + column * 3) % 11) - 5; }
float of_b(std::uint32_t row, std::uint32_t column) { return static_cast<float>((row * 5 + column * 2) % 13) - 6; }

// The elements of each lane, as in the PTX ISA.
template <class T>
void multiply_once(const void* arguments) {
  const std::uint32_t group = thread_index() % 32 / 4, in_group = thread_index() % 4;
  std::uint32_t a[4], b[2];
  for (std::uint32_t i = 0; i < 8; i += 2) {
    const std::uint32_t row = i < 2 || (i >= 4 && i < 6) ? group : group + 8, column = in_group * 2 + (i < 4 ? 0 : 8);
    a[i / 2] = pack(of_a(row, column), of_a(row, column + 1), T{});
  }
  for (std::uint32_t i = 0; i < 4; i += 2) {
    const std::uint32_t row = in_group * 2 + (i < 2 ? 0 : 8);
    b[i / 2] = pack(of_b(row, group), of_b(row + 1, group), T{});
  }
  float sums[4];
  for (std::uint32_t i = 0; i < 4; ++i) sums[i] = static_cast<float>(i);
  multiply_matrices(a, b, sums, T{});
  for (std::uint32_t i = 0; i < 4; ++i)
    store(given(arguments).y + (i < 2 ? group : group + 8) * 8 + in_group * 2 + i % 2, sums[i]);
}

TEST(EmulatorOfThreads, MultipliesMatricesOfAWarp) {
  for (const auto body : {&multiply_once<Half>, &multiply_once<Brain>}) {
    Bench bench;
    bench.run(body, {.threads = 32}, {.order = ThreadOrder::random});
    for (std::uint32_t row = 0; row < 16; ++row)
      for (std::uint32_t column = 0; column < 8; ++column) {
        float wanted = static_cast<float>(row / 8 * 2 + column % 2);
        for (std::uint32_t k = 0; k < 16; ++k) wanted += of_a(row, k) * of_b(k, column);
        EXPECT_EQ(bench.y[row * 8 + column], wanted) << row << ", " << column;
      }
  }
}

TEST(EmulatorOfThreads, SumsProductsInOrderOrAsADeviceDropsWhatIsSmall) {
  std::array<float, 16> a, b;
  a.fill(1);
  b.fill(1);
  b[0] = 0x1p24f;  // for which 1 is half of the last place
  EXPECT_EQ(matrix_sum(a, b, 0), 0x1p24f);
  std::swap(b[0], b[15]);
  EXPECT_EQ(matrix_sum(a, b, 1), 0x1p24f + 16);
  current_approximation = Approximation::scattered;
  const float dropped = matrix_sum(a, b, 1), plain = matrix_sum(a, a, 1);
  current_approximation = Approximation::exact;
  EXPECT_EQ(dropped, 0x1p24f + 8);  // of the second eight all the ones
  EXPECT_EQ(plain, 17);
}

template <class T>
void multiply_nothing(T) {
  const std::uint32_t a[4] = {}, b[2] = {};
  float sums[4] = {};
  multiply_matrices(a, b, sums, T{});
}

TEST(EmulatorOfThreads, FindsLanesThatMultiplyNoOrOtherMatrices) {
  const auto fault = [](void (*body)(const void*), std::uint32_t threads = 32) {
    return Bench().fault(body, {.threads = threads});
  };
  EXPECT_NE(fault([](const void*) {
              if (thread_index() < 16) return multiply_nothing(Half{});
              multiply_nothing(Brain{});
            }).find("matrix product of bf16 while lanes of its mask are in the matrix product of f16"),
            std::string::npos);
  const std::string left = fault([](const void*) {
    if (thread_index() != 7) multiply_nothing(Half{});
  });
  EXPECT_TRUE(left.find("never ends") != std::string::npos || left.find("lane 7 has ended") != std::string::npos)
      << left;
  EXPECT_NE(fault([](const void*) { multiply_nothing(Half{}); }, 16).find("has ended"), std::string::npos);
}

TEST(EmulatorOfThreads, AsksAWholeWarp) {
  Bench bench;
  bench.run(
      [](const void* arguments) {
        const bool found = holds_in_any_lane(thread_index() == 40);
        store(given(arguments).y + thread_index(), found ? 1.0f : 0.0f);
      },
      {.threads = 64}, {.order = ThreadOrder::random});
  EXPECT_EQ(bench.y[31], 0);
  EXPECT_EQ(bench.y[32], 1);
}

TEST(EmulatorOfThreads, FindsAccessOutsideItsMemory) {
  const auto beyond = [](const void* arguments) {
    store(given(arguments).y + thread_index() + 200, load(given(arguments).x + thread_index()));
  };
  EXPECT_NE(Bench().fault(beyond, {.threads = 64}).find("memory that was not given"), std::string::npos);
  const auto backwards = [](const void* arguments) { store(const_cast<float*>(given(arguments).x), 1.0f); };
  EXPECT_NE(Bench().fault(backwards, {.threads = 1}).find("writes x, which may only be read"), std::string::npos);
  const auto crooked = [](const void* arguments) {
    store(given(arguments).y, static_cast<float>(load_once(given(arguments).x + 1).word[0]));
  };
  EXPECT_NE(Bench().fault(crooked, {.threads = 1}).find("not a multiple"), std::string::npos);
}

TEST(EmulatorOfThreads, FindsTwoWritersOfAByteInAnyBlocks) {
  const auto all_to_one = [](const void* arguments) { store(given(arguments).y, 1.0f); };
  EXPECT_NE(Bench().fault(all_to_one, {.blocks = 2, .threads = 1}).find("which another thread wrote"),
            std::string::npos);
}

TEST(EmulatorOfThreads, RefusesLaunchesThatNoDeviceTakes) {
  EXPECT_NE(Bench().fault(reversed_in_block, {.threads = 2048}).find("1 to 1024 threads"), std::string::npos);
  EXPECT_NE(Bench().fault(reversed_in_block, {.blocks = 0, .threads = 64}).find("0 x 1"), std::string::npos);
  EXPECT_NE(Bench().fault(reversed_in_block, {.block_rows = 70000, .threads = 64}).find("70000"), std::string::npos);
}

TEST(EmulatorOfThreads, RunsOnAfterAFault) {
  Bench bench;
  bench.fault([](const void*) { warp_barrier(0, Site::current()); }, {.threads = 32});
  bench.run(reversed_in_block, {.blocks = 4, .threads = 64});
  EXPECT_EQ(bench.y[0], 63);
}

TEST(EmulatorOfThreads, CountsTheSectorsOfWarps) {
  const auto side_by_side = [](const void* arguments) {
    store(given(arguments).y + thread_index(), load(given(arguments).x + thread_index()));
  };
  Bench bench;
  alignas(32) static std::array<float, 256> x, y;
  MemoryMap memory;
  memory.allow_reading("x", x.data(), sizeof x);
  memory.allow_writing("y", y.data(), sizeof y);
  const Arguments arguments{x.data(), y.data(), 256};
  Emulator emulator({.measure = true});
  emulator.run({"kernel", side_by_side, 1024, sizeof arguments}, {.threads = 64}, &arguments, memory);
  ASSERT_EQ(emulator.traffic().size(), 2u);
  for (const AccessTraffic& access : emulator.traffic()) {
    EXPECT_EQ(access.requests, 2) << access.place;
    EXPECT_EQ(access.bytes, 256) << access.place;
    EXPECT_EQ(access.sectors, 8) << access.place;
  }
  const auto eight_apart = [](const void* arguments) {
    const float value = load(given(arguments).x + thread_index() * 8);
    store(given(arguments).y + thread_index(), value);
  };
  emulator.run({"kernel", eight_apart, 1024, sizeof arguments}, {.threads = 32}, &arguments, memory);
  ASSERT_EQ(emulator.traffic().size(), 2u);
  const AccessTraffic& loads = emulator.traffic()[0];
  const AccessTraffic& stores = emulator.traffic()[1];
  EXPECT_EQ(loads.requests, 1);
  EXPECT_EQ(loads.bytes, 128);
  EXPECT_EQ(loads.sectors, 32);
  EXPECT_EQ(stores.sectors, 4);
  EXPECT_TRUE(stores.writes);
}

}  // namespace weft::emulator_test
