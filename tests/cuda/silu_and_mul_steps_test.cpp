// The steps of docs/cuda-silu-quant.md from the tree to the fast design: all give the same bits, and each row of the
// page's table agrees with the contract of its machine code and with the emulator's counts.

#include "tests/cuda/steps/silu_and_mul_steps.cu"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"
#include "tensor/convert.h"
#include "tests/cuda/cuda_context.h"
#include "tests/tensor/random_source.h"

namespace weft::silu_and_mul_steps_test {

using namespace cuda;

constexpr std::uint32_t kRows = 4, kColumns = 2048, kGroup = 128, kGroups = kColumns / kGroup;
constexpr std::int64_t kElements = std::int64_t{kRows} * kColumns;

struct Step {
  const char* title;  // in the page
  std::string kernel;
  int elements;  // a thread
};

std::string name_of(SiluAndMulDesign design) {
  return SiluAndMulPerBlockQuant{.rounds = false, .design = design}.kernel_name();
}
const std::vector<Step>& steps() {
  static const std::vector<Step> all = {
      {"tree", name_of(SiluAndMulDesign::tree), 1},
      {"loads of 16 bytes, shuffles", "silu_and_mul_wide_loads", 8},
      {"division by a product and a correction", "silu_and_mul_corrected_quotients", 8},
      {"two loads of each half under way", name_of(SiluAndMulDesign::fast), 16},
  };
  return all;
}

const EmulatedKernel& kernel_of(const Step& step) {
  for (const EmulatedKernel& kernel : emulated_silu_and_mul_steps())
    if (kernel.name == step.kernel) return kernel;
  return emulated_kernel(step.kernel);
}

LaunchShape plan(const Step& step, SiluAndMulPerBlockQuantArguments& arguments) {
  if (step.elements == 1) return SiluAndMulPerBlockQuant{.design = SiluAndMulDesign::tree}.plan(arguments);
  if (step.elements == 16) return SiluAndMulPerBlockQuant{}.plan(arguments);
  const std::uint32_t of_block = kGroupThreads * static_cast<std::uint32_t>(step.elements) / kGroup;
  const std::uint32_t slices = (kGroups + of_block - 1) / of_block;
  arguments.order = {.slices = divisor_of(slices), .along_rows = false};
  return {.blocks = kRows * slices, .threads = kGroupThreads};
}

struct Ran {
  Tensor codes = Tensor::empty(Meta::tensor(DType::f8e4m3, {kRows, kColumns}));
  Tensor scales = Tensor::empty(Meta::tensor(DType::f32, {kRows, kGroups}));
  std::vector<AccessTraffic> traffic;
};

Ran run(const Step& step) {
  static const Tensor x = [] {
    RandomSource random(7);
    Tensor numbers = Tensor::empty(Meta::tensor(DType::bf16, {kRows, 2 * kColumns}));
    for (std::int64_t i = 0; i < 2 * kElements; ++i)
      store_float(DType::bf16, numbers.data(), i, static_cast<float>(random.real(-4, 4)));
    return numbers;
  }();
  Ran ran;
  SiluAndMulPerBlockQuantArguments arguments{.x = x.data(),
                                             .codes = ran.codes.data(),
                                             .places = {ran.scales.as<float>(), kGroups, 1},
                                             .rows = kRows,
                                             .columns = kColumns};
  const LaunchShape shape = plan(step, arguments);
  MemoryMap memory;
  memory.allow_reading("x", x.data(), 4 * kElements);
  memory.allow_writing("codes", ran.codes.data(), kElements);
  memory.allow_writing("scales", ran.scales.data(), kRows * kGroups * sizeof(float));
  Emulator emulator({.measure = true});
  emulator.run(kernel_of(step), shape, &arguments, memory);
  EXPECT_EQ(memory.unwritten("codes") + memory.unwritten("scales"), 0u) << step.title;
  ran.traffic = emulator.traffic();
  return ran;
}

TEST(SiluAndMulSteps, AllGiveTheBitsOfTheTree) {
  const Ran tree = run(steps().front());
  for (const Step& step : steps()) {
    const Ran ran = run(step);
    EXPECT_EQ(difference_of_results({tree.codes, tree.scales}, {ran.codes, ran.scales}), "") << step.title;
  }
}

// "8 of 64 bytes, 4 of 32": the requests of warps for 128 elements, and bytes of each; scales are left out.
std::string accesses_of(const Step& step) {
  std::int64_t requests[2] = {}, bytes[2] = {};
  for (const AccessTraffic& access : run(step).traffic) {
    if (access.writes && access.bytes != kElements) continue;
    EXPECT_EQ(access.sectors * 32, access.bytes) << step.title << ", " << access.place;
    requests[access.writes] += access.requests;
    bytes[access.writes] += access.bytes;
  }
  EXPECT_EQ(bytes[0], 4 * kElements) << step.title;
  EXPECT_EQ(bytes[1], kElements) << step.title;
  const auto of_group = [&](int i) { return static_cast<double>(requests[i] * kGroup) / kElements; };
  return fmt::format("{:g} of {} bytes, {:g} of {}", of_group(0), bytes[0] / requests[0], of_group(1),
                     bytes[1] / requests[1]);
}

TEST(SiluAndMulSteps, AreThoseOfThePagesTable) {
  const auto rules_of = [](const char* path) {
    return nlohmann::json::parse(read_file(std::string(WEFT_SOURCE_ROOT) + path, 1u << 20)).at("kernels");
  };
  nlohmann::json rules = rules_of("/src/kernels/cuda/device/contract.json");
  rules.update(rules_of("/tests/cuda/steps/steps.json"));
  const std::string page = read_file(WEFT_SOURCE_ROOT "/docs/cuda-silu-quant.md", 1u << 20);
  for (const Step& step : steps()) {
    const nlohmann::json& rule = rules.at(step.kernel);
    const double way =
        rule.at("way").is_object() ? rule.at("way").at("90").get<double>() : rule.at("way").get<double>();
    const int barriers = rule.contains("instructions") ? rule.at("instructions").at("BAR").get<int>() : 0;
    const std::string row = fmt::format("| {} | {} | {:g} | {} | {} |\n", step.title, step.elements,
                                        way / step.elements, accesses_of(step), barriers);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

}  // namespace weft::silu_and_mul_steps_test
