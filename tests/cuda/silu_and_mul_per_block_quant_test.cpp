#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/sample_call.h"
#include "emulator/approximation.h"
#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "tensor/convert.h"
#include "tensor/float8.h"
#include "tensor/reference_math.h"
#include "tests/cuda/cuda_context.h"
#include "tests/tensor/random_source.h"
#include "tests/thrown_message.h"

namespace weft::silu_and_mul_per_block_quant_test {

using namespace cuda;

constexpr const char* kFp8 = "silu_and_mul_per_token_group_quant_fp8";
constexpr const char* kInt8 = "silu_and_mul_per_token_group_quant_int8";

// Values of all magnitudes, with some zeros of either sign, denormals and overflowing values, and optionally infinity
// and NaN.
Tensor numbers(DType dtype, std::int64_t rows, std::int64_t columns, bool has_strange = false) {
  RandomSource random(static_cast<std::uint64_t>(rows * 131 + columns));
  Tensor x = Tensor::empty(Meta::tensor(dtype, {rows, columns}));
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    float value = static_cast<float>(random.real(-4, 4)) * std::ldexp(1.0f, static_cast<int>(random.integer(-6, 3)));
    const std::int64_t kind = random.integer(0, 400);
    if (kind == 0) value = 0;
    if (kind == 1) value = -0.0f;
    if (kind == 2) value = 1e-39f;
    if (kind == 3) value = -100;
    if (has_strange && kind == 4) value = std::numeric_limits<float>::infinity();
    if (has_strange && kind == 5) value = std::numeric_limits<float>::quiet_NaN();
    if (has_strange && kind == 6) value = -3e38f;
    store_float(dtype, x.data(), i, value);
  }
  return x;
}

Attributes complete(const Context& context, const char* op, const NamedAttributes& given) {
  return complete_attributes(context.ops.at(op).schema, given);
}

TEST(CudaSiluAndMulPerBlockQuant, HasTheBitsOfTheMeaningOnEverySampleItTakes) {
  const auto context = cuda_context();
  int taken = 0;
  for (const char* name : {kFp8, kInt8}) {
    for (const SampleCall& call : sample_calls(context->ops.at(name))) {
      SCOPED_TRACE(call.text);
      if (!supports_of_cuda(*context, name, call.operands, call.attributes)) continue;
      const std::vector<Tensor> came = by_cuda(*context, name, call.operands, call.attributes);
      ++taken;
      EXPECT_EQ(difference_of_results(meaning_of(*context, name, call.operands, call.attributes), came), "");
    }
  }
  EXPECT_GE(taken, 12);
}

struct Form {
  const char* op;
  NamedAttributes attributes;
};
std::vector<Form> forms() {
  const EnumWord f32{"f32"};
  std::vector<Form> all;
  for (const std::int64_t group : {64, 128}) {
    all.push_back({kFp8, {{"group_size", group}}});
    all.push_back({kFp8, {{"group_size", group}, {"intermediate", f32}, {"scale_by", EnumWord{"reciprocal"}}}});
    all.push_back(
        {kFp8, {{"group_size", group}, {"use_ue8m0", true}, {"column_major_scales", true}, {"intermediate", f32}}});
    all.push_back({kFp8,
                   {{"group_size", group},
                    {"column_major_scales", true},
                    {"tma_aligned_scales", true},
                    {"minimum_scale", 1.0 / (448 * 512)}}});
    // Here scales may be denormal.
    all.push_back({kFp8, {{"group_size", group}, {"eps", 0.0}, {"use_ue8m0", true}, {"ue8m0_minimum", 0.0}}});
    all.push_back({kInt8, {{"group_size", group}}});
    all.push_back({kInt8, {{"group_size", group}, {"eps", 0.0}}});
    all.push_back({kInt8, {{"group_size", group}, {"rounding", EnumWord{"toward_zero"}}}});
    all.push_back({kInt8,
                   {{"group_size", group},
                    {"intermediate", f32},
                    {"eps", 0.0},
                    {"minimum_scale", 0.01},
                    {"column_major_scales", true},
                    {"tma_aligned_scales", true}}});
  }
  all.push_back({kInt8, {{"group_size", 64}, {"intermediate", f32}, {"rounding", EnumWord{"toward_zero"}}}});
  all.push_back({kInt8, {{"group_size", 32}}});
  all.push_back({kInt8, {{"group_size", 32}, {"rounding", EnumWord{"toward_zero"}}}});
  return all;
}

TEST(CudaSiluAndMulPerBlockQuant, HasTheBitsOfTheMeaningInEveryForm) {
  const auto context = cuda_context();
  for (const Form& form : forms()) {
    const Attributes attributes = complete(*context, form.op, form.attributes);
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      for (const auto& [rows, columns] : {std::pair{1, 128}, {5, 384}, {3, 2304}, {37, 128}}) {
        SCOPED_TRACE(fmt::format("{} {} [{}, {}]", form.op, dtype_text(dtype), rows, columns));
        const std::vector<Tensor> x = {numbers(dtype, rows, 2 * columns, rows == 5)};
        const std::vector<Tensor> wanted = meaning_of(*context, form.op, x, attributes);
        EXPECT_EQ(difference_of_results(wanted, by_cuda(*context, form.op, x, attributes)), "");
        if (rows == 5 && supports_of_cuda(*context, form.op, x, attributes, "cuda_tree")) {
          EXPECT_EQ(difference_of_results(wanted, by_cuda(*context, form.op, x, attributes, "cuda_tree")), "");
        }
      }
    }
  }
}

// A launch without an op, for what ops do not state: other designs, a bound of int8, the device's own mathematics.
struct Launched {
  Tensor x, codes, scales;

  Launched(const SiluAndMulPerBlockQuant& kernel, Tensor given, GroupRule rule = {}, bool column_major = false)
      : x(std::move(given)) {
    const std::int64_t rows = x.meta.shape[0].number(), columns = x.meta.shape[1].number() / 2;
    const std::int64_t groups = columns / kernel.group_size;
    codes = Tensor::empty(Meta::tensor(kernel.codes, {rows, columns}));
    scales = Tensor::empty(Meta::tensor(DType::f32, {rows, groups}));
    arguments = {.x = x.data(),
                 .codes = codes.data(),
                 .places = {scales.as<float>(), static_cast<std::uint32_t>(column_major ? 1 : groups),
                            static_cast<std::uint32_t>(column_major ? rows : 1)},
                 .rule = rule,
                 .rows = static_cast<std::uint32_t>(rows),
                 .columns = static_cast<std::uint32_t>(columns)};
    shape = kernel.plan(arguments);
    MemoryMap memory;
    memory.allow_reading("x", x.data(), static_cast<std::size_t>(x.meta.bytes().number()));
    if (rule.bound != nullptr) memory.allow_reading("bound", rule.bound, sizeof(float));
    memory.allow_writing("codes", codes.data(), static_cast<std::size_t>(rows * columns));
    memory.allow_writing("scales", scales.data(), static_cast<std::size_t>(rows * groups * 4));
    Emulator emulator({.measure = true});
    emulator.run(emulated_kernel(kernel.kernel_name()), shape, &arguments, memory);
    EXPECT_EQ(memory.unwritten("codes"), 0u);
    EXPECT_EQ(memory.unwritten("scales"), 0u);
    traffic = emulator.traffic();
  }

  std::int64_t scale_place(std::int64_t row, std::int64_t group) const {
    return row * arguments.places.row_stride + group * arguments.places.group_stride;
  }
  SiluAndMulPerBlockQuantArguments arguments;
  LaunchShape shape;
  std::vector<AccessTraffic> traffic;
};

const GroupRule kPublishedRule{.least_scale = 1.0f / (448 * 512)};

TEST(CudaSiluAndMulPerBlockQuant, GivesTheTreeDesignsBitsInTheFastDesign) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const DType codes : {DType::f8e4m3, DType::i8})
      for (const std::int64_t group : {64, 128})
        for (const bool rounds : {false, true}) {
          SiluAndMulPerBlockQuant kernel{dtype, codes, group, rounds, SiluAndMulDesign::fast, Mathematics::reference};
          const Tensor x = numbers(dtype, 21, 768, true);
          const Launched fast(kernel, x, kPublishedRule, true);
          kernel.design = SiluAndMulDesign::tree;
          const Launched tree(kernel, x, kPublishedRule, true);
          EXPECT_EQ(difference_of_results({tree.codes, tree.scales}, {fast.codes, fast.scales}), "")
              << kernel.kernel_name();
        }
}

// As in vLLM's silu_and_mul_per_block_quant.
TEST(CudaSiluAndMulPerBlockQuant, HoldsScalesToTheBound) {
  const auto context = cuda_context();
  const Attributes attributes = complete(
      *context, kFp8, {{"group_size", 128}, {"intermediate", EnumWord{"f32"}}, {"scale_ub_of", EnumWord{"scale"}}});
  const Tensor x = numbers(DType::bf16, 9, 512), bound = Tensor::empty(Meta::tensor(DType::f32, {1}));
  *bound.as<float>() = 0.001f;
  for (const char* provider : {"cuda_reference", "cuda_tree"}) {
    const std::vector<Tensor> free = by_cuda(*context, kFp8, {x}, attributes, provider);
    const std::vector<Tensor> held = by_cuda(*context, kFp8, {x, bound}, attributes, provider);
    int count = 0;
    for (std::int64_t row = 0; row < 9; ++row)
      for (std::int64_t column = 0; column < 256; ++column) {
        const std::int64_t place = row * 2 + column / 128;
        const float scale = std::min(free[1].as<float>()[place], 0.001f);
        EXPECT_EQ(held[1].as<float>()[place], scale);
        count += scale == 0.001f ? 1 : 0;
        const auto element = [&](std::int64_t i) { return load_float(DType::bf16, x.data(), row * 512 + i); };
        const float value = reference_silu(element(column)) * element(column + 256);
        EXPECT_EQ(std::to_integer<int>(held[0].data()[row * 256 + column]), f32_to_f8e4m3(value / scale));
      }
    EXPECT_GT(count, 1000) << provider;
  }
}

// A bound that leaves the largest element just beyond the last code.
TEST(CudaSiluAndMulPerBlockQuant, HoldsInt8CodesAtTheEdge) {
  const SiluAndMulPerBlockQuant kernel{.x = DType::f32, .codes = DType::i8, .mathematics = Mathematics::reference};
  for (const float largest : {127.4f, 127.49999f, 127.5f, 128.0f, 128.4f, 500.0f}) {
    Tensor x = Tensor::empty(Meta::tensor(DType::f32, {1, 256}));
    for (std::int64_t i = 0; i < 128; ++i) {
      x.as<float>()[i] = 100;  // silu gives 100
      x.as<float>()[128 + i] = (i % 2 == 0 ? largest : -largest) / 100;
    }
    const float bound = 1;
    const Launched launched(kernel, x, {.bound = &bound});
    for (std::int64_t i = 0; i < 128; ++i) {
      const float value = reference_silu(100.0f) * x.as<float>()[128 + i];
      const float wanted = std::nearbyint(std::clamp(value, -128.0f, 127.0f));
      EXPECT_EQ(static_cast<int>(launched.codes.as<std::int8_t>()[i]), static_cast<int>(wanted)) << largest;
    }
  }
}

// The largest distance of codes of two results where their scales agree.
int largest_step(const Tensor& wanted, const Tensor& came) {
  const auto place = [](DType dtype, int code) {
    if (dtype == DType::i8) return static_cast<int>(static_cast<std::int8_t>(code));
    return (code & 0x80) != 0 ? -(code & 0x7f) : code & 0x7f;
  };
  int most = 0;
  for (std::int64_t i = 0; i < wanted.meta.bytes().number(); ++i)
    most = std::max(most, std::abs(place(wanted.meta.dtype, std::to_integer<int>(wanted.data()[i])) -
                                   place(came.meta.dtype, std::to_integer<int>(came.data()[i]))));
  return most;
}

TEST(CudaSiluAndMulPerBlockQuant, StaysWithinOneCodeWhereverTheDevicesFunctionsLieInTheirBounds) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (const DType codes : {DType::f8e4m3, DType::i8}) {
      SiluAndMulPerBlockQuant kernel{.x = dtype, .codes = codes, .rounds = true, .mathematics = Mathematics::reference};
      const Tensor x = numbers(dtype, 16, 1024);
      const Launched reference(kernel, x, kPublishedRule);
      kernel.mathematics = Mathematics::device;
      for (const Approximation approximation :
           {Approximation::exact, Approximation::upwards, Approximation::downwards, Approximation::scattered}) {
        current_approximation = approximation;
        const Launched device(kernel, x, kPublishedRule);
        current_approximation = Approximation::exact;
        EXPECT_LE(largest_step(reference.codes, device.codes), 1) << kernel.kernel_name();
        for (std::int64_t i = 0; i < 16 * 4; ++i) {
          const float wanted = reference.scales.as<float>()[i];
          // Where the largest element is rounded, to one step of its type.
          const float step = dtype == DType::bf16 ? 0x1p-7f : dtype == DType::f16 ? 0x1p-10f : 0x1p-19f;
          EXPECT_NEAR(device.scales.as<float>()[i], wanted, wanted * step) << kernel.kernel_name();
        }
      }
    }
  }
}

TEST(CudaSiluAndMulPerBlockQuant, MovesNoSectorThatItDoesNotUse) {
  const SiluAndMulPerBlockQuant kernel{.mathematics = Mathematics::reference};
  const std::int64_t rows = 64, columns = 2048;
  for (const bool column_major : {false, true}) {
    const Launched launched(kernel, numbers(DType::bf16, rows, 2 * columns), kPublishedRule, column_major);
    std::int64_t bytes = 0;
    for (const AccessTraffic& access : launched.traffic) {
      bytes += access.bytes;
      // A warp gives four scales: half a sector.
      const std::int64_t of_request = access.writes && access.bytes == rows * columns / 128 * 4 ? 16 : 32;
      EXPECT_EQ(access.sectors * of_request, access.bytes) << access.place << (column_major ? " column-major" : "");
    }
    EXPECT_EQ(bytes, rows * columns * 5 + rows * columns / 128 * 4);
  }
}

TEST(CudaSiluAndMulPerBlockQuant, StandsInBlocksWithoutSpareLanesForTheUsualWidth) {
  alignas(16) static std::byte aligned[16];
  SiluAndMulPerBlockQuantArguments arguments{.x = aligned,
                                             .codes = aligned,
                                             .places = {reinterpret_cast<float*>(aligned), 112, 1},
                                             .rows = 100,
                                             .columns = 14336};
  const LaunchShape shape = SiluAndMulPerBlockQuant{}.plan(arguments);
  EXPECT_EQ(shape.threads, 128u);
  EXPECT_EQ(shape.blocks, 700u);
}

TEST(CudaSiluAndMulPerBlockQuant, TakesMoreGroupsAndElementsThanTheTreeDesign) {
  alignas(16) static std::byte aligned[16];
  auto* scales = reinterpret_cast<float*>(aligned);
  SiluAndMulPerBlockQuantArguments wide{
      .x = aligned, .codes = aligned, .places = {scales, 70000, 1}, .rows = 1000, .columns = 70000 * 64};
  SiluAndMulPerBlockQuant kernel{.group_size = 64};
  EXPECT_EQ(kernel.plan(wide).blocks, 1000u * 2188);  // 4.5e9 elements
  kernel.design = SiluAndMulDesign::tree;
  EXPECT_NE(message_of([&] { kernel.plan(wide); }).find("at most 65535 groups"), std::string::npos);
}

TEST(CudaSiluAndMulPerBlockQuant, RefusesBadInput) {
  alignas(16) static std::byte aligned[32];
  const auto message = [](SiluAndMulPerBlockQuant kernel, SiluAndMulPerBlockQuantArguments arguments) {
    return message_of([&] {
      kernel.kernel_name();
      kernel.plan(arguments);
    });
  };
  const SiluAndMulPerBlockQuantArguments good{
      .x = aligned, .codes = aligned, .places = {reinterpret_cast<float*>(aligned), 1, 1}, .rows = 1, .columns = 128};
  EXPECT_EQ(message({}, good), "");
  auto arguments = good;
  arguments.columns = 192;
  EXPECT_NE(message({}, arguments).find("whole groups of 128, but have 192"), std::string::npos);
  arguments = good;
  arguments.x = aligned + 2;
  EXPECT_NE(message({}, arguments).find("x must be at a multiple of 16"), std::string::npos);
  arguments = good;
  arguments.places.scales = nullptr;
  EXPECT_NE(message({}, arguments).find("scales must be at"), std::string::npos);
  EXPECT_NE(message({.x = DType::f64}, good).find("bf16, f16 or f32, but is of f64"), std::string::npos);
  EXPECT_NE(message({.codes = DType::f8e5m2}, good).find("f8e4m3 or i8"), std::string::npos);
  EXPECT_NE(message({.group_size = 32}, good).find("32 of int8, but is 32"), std::string::npos);
}

}  // namespace weft::silu_and_mul_per_block_quant_test
