// The skeletons in the shapes of AVX-512, which few hosts of the suite have, compared with the baseline objects, which
// the other tests compare with the meaning of each op.

#include <cmath>
#include <cstring>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/kernels/cpu_rows_support.h"
#include "tests/kernels/emulated_rows.h"

namespace weft::cpu::cpu_sixteen_lanes_test {

constexpr std::int64_t kRows = 9;
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

void expect_same_tensor(const Tensor& wanted, const Tensor& came, const std::string& what) {
  expect_same_bits(values_of(wanted), values_of(came), what);
}

class SixteenLanes : public testing::TestWithParam<std::int64_t> {
 protected:
  const RowWiseKernels& baseline = row_wise_kernels_baseline;
  const RowWiseKernels& emulated = row_wise_kernels_emulated;
  std::int64_t columns = GetParam();
  Tensor rows(int element, std::int64_t width, std::uint32_t seed) const {
    return tensor_of(kTypes[element], {kRows, width}, rows_with_specials(kRows, width, seed));
  }
};

TEST_P(SixteenLanes, Norms) {
  for (int element = 0; element < kElements; ++element) {
    for (int weighting = 0; weighting < kWeightings; ++weighting) {
      for (bool fused : {false, true}) {
        const Tensor x = rows(element, columns, 1), residual = rows(element, columns, 2);
        const Tensor weight = tensor_of(weighting == 2 ? kTypes[element] : DType::f32, {columns},
                                        normal_values(static_cast<std::size_t>(columns), 3));
        const auto run = [&](const RowWiseKernels& kernels) {
          const std::vector<Tensor> results{Tensor::empty(x.meta), Tensor::empty(x.meta)};
          NormTask task{.x = x.data(),
                        .residual = residual.data(),
                        .weight = weight.data(),
                        .output = results[0].data(),
                        .residual_output = results[1].data(),
                        .x_stride = columns,
                        .residual_stride = columns,
                        .output_stride = columns,
                        .residual_output_stride = columns,
                        .rows = kRows,
                        .columns = columns,
                        .variance_columns = columns,
                        .epsilon = 1e-5f};
          (fused ? kernels.fused_add_rms_norm : kernels.rms_norm)[element][weighting](task);
          return results;
        };
        const auto wanted = run(baseline), came = run(emulated);
        expect_same_tensor(wanted[0], came[0], "y");
        expect_same_tensor(wanted[1], came[1], "residual");
      }
    }
  }
}

TEST_P(SixteenLanes, ActivationsSumsProductsSoftmaxAndCasts) {
  for (int element = 0; element < kElements; ++element) {
    const Tensor x = rows(element, 2 * columns, 1), y = rows(element, columns, 2);
    const auto compare = [&](auto function_of, DType output, const char* what) {
      const auto run = [&](const RowWiseKernels& kernels) {
        const Tensor result = Tensor::empty(Meta::tensor(output, {kRows, columns}));
        function_of(kernels)(RowTask{.x = x.data(),
                                     .y = y.data(),
                                     .output = result.data(),
                                     .x_stride = 2 * columns,
                                     .y_stride = columns,
                                     .output_stride = columns,
                                     .rows = kRows,
                                     .columns = columns});
        return result;
      };
      expect_same_tensor(run(baseline), run(emulated), what);
    };
    for (int gate = 0; gate < kGates; ++gate)
      compare([&](const RowWiseKernels& kernels) { return kernels.gated[gate][element]; }, kTypes[element], "gated");
    compare([&](const RowWiseKernels& kernels) { return kernels.add[element]; }, kTypes[element], "add");
    compare([&](const RowWiseKernels& kernels) { return kernels.mul[element]; }, kTypes[element], "mul");
    compare([&](const RowWiseKernels& kernels) { return kernels.softmax[element]; }, kTypes[element], "softmax");
    for (int to = 0; to < kElements; ++to)
      compare([&](const RowWiseKernels& kernels) { return kernels.cast[element][to]; }, kTypes[to], "cast");
  }
}

struct Quantized {
  Tensor codes, scales;
  Quantized(std::int64_t width, std::int64_t groups)
      : codes(Tensor::empty(Meta::tensor(DType::i8, {kRows, width}))),
        scales(Tensor::empty(Meta::tensor(DType::f32, {kRows, groups}))) {}
};

// Every epilogue, the first three also by another rule.
std::vector<QuantTask> epilogues(std::int64_t columns, std::int64_t group, const float* given) {
  std::vector<QuantTask> tasks(columns % kFp4Group == 0 ? 9 : 8);
  for (QuantTask& task : tasks) {
    task.codes_stride = task.columns = columns;
    task.rows = kRows;
    task.group = group;
    task.least = 1e-10f;
  }
  tasks[1].toward_zero = true;
  tasks[2].rule = QuantRule::int8_rows;
  tasks[2].group = columns;
  for (int i : {3, 4, 5}) tasks[static_cast<std::size_t>(i)].rule = QuantRule::fp8_groups;
  tasks[4].power_of_two = true;
  tasks[5].group = columns;
  tasks[5].codes_by_reciprocal = tasks[5].scale_by_reciprocal = true;
  tasks[5].bounded = Bounded::magnitude;
  tasks[5].bound = 1.5f;
  tasks[6].rule = QuantRule::fp8_given;
  tasks[6].given = given;
  tasks[6].given_step = 1;
  tasks[7].rule = QuantRule::fp8_groups;
  tasks[7].bounded = Bounded::scale;
  tasks[7].bound = 0.003f;
  if (tasks.size() == 9) {
    tasks[8].rule = QuantRule::fp4_groups;
    tasks[8].group = kFp4Group;
    tasks[8].global_scale = 80;
  }
  return tasks;
}

void expect_same_quantized(const Quantized& wanted, const Quantized& came, const std::string& what) {
  expect_same_tensor(wanted.scales, came.scales, what);
  for (std::int64_t i = 0; i < wanted.codes.storage->bytes(); ++i)
    ASSERT_EQ(wanted.codes.as<std::int8_t>()[i], came.codes.as<std::int8_t>()[i]) << what << ", code " << i;
}

// Runs function(kernels, task) with both shapes of vectors and compares.
template <class Function>
void compare_epilogues(std::int64_t width, std::int64_t group, const char* what, Function function) {
  const Tensor given = tensor_of(DType::f32, {width}, normal_values(static_cast<std::size_t>(width), 6));
  const std::int64_t groups = (width + group - 1) / group;
  int number = 0;
  for (QuantTask task : epilogues(width, group, given.as<float>())) {
    const auto run = [&](const QuantizedRowKernels& kernels) {
      Quantized result(width, groups);
      std::memset(result.scales.data(), 0, static_cast<std::size_t>(result.scales.storage->bytes()));
      task.codes = result.codes.as<std::int8_t>();
      task.scales = result.scales.as<float>();
      task.scales_stride = groups;
      if (task.rule == QuantRule::fp4_groups) {  // scales after the codes of each row
        task.scale_codes = result.codes.as<std::uint8_t>() + width / 2;
        task.scales_stride = width;
      }
      function(kernels, task);
      return result;
    };
    expect_same_quantized(run(quantized_row_kernels_baseline), run(quantized_row_kernels_emulated),
                          fmt::format("{}, epilogue {}", what, number++));
  }
}

TEST_P(SixteenLanes, Quantization) {
  const std::int64_t width = 2 * columns;
  for (int element = 0; element < kElements; ++element) {
    const Tensor x = rows(element, 2 * width, 1), residual = rows(element, width, 2);
    compare_epilogues(width, columns, "alone", [&](const QuantizedRowKernels& kernels, QuantTask task) {
      task.x = x.data();
      task.x_stride = 2 * width;
      kernels.rows[element](task);
    });
    for (int gate = 0; gate < kGates; ++gate)
      for (bool wide : {false, true})
        compare_epilogues(width, columns, wide ? "wide gate" : "gate",
                          [&](const QuantizedRowKernels& kernels, const QuantTask& task) {
                            (wide ? kernels.gated_wide : kernels.gated)[gate][element](
                                {.x = x.data(), .x_stride = 2 * width, .rows = kRows, .columns = width}, task);
                          });
    for (int weighting = 0; weighting < kWeightings; ++weighting) {
      const Tensor weight = tensor_of(weighting == 2 ? kTypes[element] : DType::f32, {width},
                                      normal_values(static_cast<std::size_t>(width), 3));
      const Tensor sum = Tensor::empty(residual.meta);
      for (bool fused : {false, true})
        compare_epilogues(width, columns, fused ? "fused_add_rms_norm" : "rms_norm",
                          [&](const QuantizedRowKernels& kernels, const QuantTask& task) {
                            const NormTask norm{.x = x.data(),
                                                .residual = residual.data(),
                                                .weight = weight.data(),
                                                .residual_output = sum.data(),
                                                .x_stride = 2 * width,
                                                .residual_stride = width,
                                                .residual_output_stride = width,
                                                .rows = kRows,
                                                .columns = width,
                                                .variance_columns = width,
                                                .epsilon = 1e-5f,
                                                .normalize_rounded = task.toward_zero};
                            (fused ? kernels.fused_add_rms_norm : kernels.rms_norm)[element][weighting](norm, task);
                          });
    }
  }
}

TEST_P(SixteenLanes, Rotation) {
  const std::int64_t size = 2 * columns;
  if (size > kMaxRotaryDim) return;
  const std::vector<std::int64_t> positions{3, 0, 1, 2, 3, 1, 0, 2, 1};
  const Tensor cache = tensor_of(DType::f32, {4, size}, normal_values(static_cast<std::size_t>(4 * size), 4));
  for (int element = 0; element < kElements; ++element) {
    for (bool neox : {false, true}) {
      const Tensor x = rows(element, 2 * size, 1);
      const auto run = [&](const RowWiseKernels& kernels, bool in_place) {
        const Tensor result = in_place ? tensor_of(kTypes[element], x.meta.shape, values_of(x)) : Tensor::empty(x.meta);
        const RotatedHeads heads{.x = in_place ? result.data() : x.data(),
                                 .output = result.data(),
                                 .x_stride = 2 * size,
                                 .output_stride = 2 * size,
                                 .heads = 2};
        kernels.rotary[element]({.query = heads,
                                 .rows = kRows,
                                 .head_size = size,
                                 .rotary_dim = size,
                                 .neox = neox,
                                 .positions = positions.data(),
                                 .cos_sin_cache = cache.data(),
                                 .cache_stride = size});
        return result;
      };
      const Tensor wanted = run(baseline, false);
      expect_same_tensor(wanted, run(emulated, false), neox ? "neox" : "pairs");
      expect_same_tensor(wanted, run(emulated, true), neox ? "neox in place" : "pairs in place");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, SixteenLanes, testing::Values(1, 7, 15, 16, 17, 63, 64, 65, 576, 1000));

struct AttentionCase {
  std::int64_t head_dim;
  std::int64_t block;
  int pages;  // element type
};

std::vector<float> attended(const AttentionKernels& kernels, const AttentionCase& test, std::int64_t rows_at_once) {
  constexpr std::int64_t kTokens = 290, kQueryTokens = 7, kGroup = 3;
  const std::int64_t width = kGroup * test.head_dim, blocks = (kTokens + test.block - 1) / test.block;
  const Tensor query = tensor_of(DType::f32, {kQueryTokens, width}, normal_values(kQueryTokens * width, 1));
  const std::vector<float> keys = normal_values(static_cast<std::size_t>(kTokens * test.head_dim), 2);
  const std::vector<float> values = normal_values(static_cast<std::size_t>(kTokens * test.head_dim), 3);
  const std::int64_t page_elements = 2 * test.block * test.head_dim;
  std::vector<float> pages(static_cast<std::size_t>(blocks * page_elements), NAN);
  std::vector<std::int32_t> table;
  for (std::int64_t b = 0; b < blocks; ++b) table.push_back(static_cast<std::int32_t>(blocks - 1 - b));
  for (std::int64_t t = 0; t < kTokens; ++t) {
    float* page = pages.data() + table[static_cast<std::size_t>(t / test.block)] * page_elements;
    for (std::int64_t d = 0; d < test.head_dim; ++d) {
      page[d * test.block + t % test.block] = keys[static_cast<std::size_t>(t * test.head_dim + d)];
      page[(test.block + t % test.block) * test.head_dim + d] = values[static_cast<std::size_t>(t * test.head_dim + d)];
    }
  }
  const Tensor stored = tensor_of(kTypes[test.pages], {static_cast<std::int64_t>(pages.size())}, pages);
  const Tensor output = Tensor::empty(query.meta);
  const auto scratch = Storage::allocate(attention_scratch_bytes(test.head_dim));
  for (std::int64_t row = 0; row < kQueryTokens * kGroup; row += rows_at_once) {
    kernels.attend[test.pages]({.query = query.data(),
                                .output = output.data(),
                                .query_token_stride = width,
                                .output_token_stride = width,
                                .first_row = row,
                                .last_row = std::min(row + rows_at_once, kQueryTokens * kGroup),
                                .group = kGroup,
                                .first_length = kTokens - kQueryTokens + 1,
                                .head_dim = test.head_dim,
                                .scale = 0.125f,
                                .pages = stored.data(),
                                .page_elements = page_elements,
                                .block = test.block,
                                .block_table = table.data(),
                                .scratch = scratch->data()});
  }
  return values_of(output);
}

TEST(SixteenLanesAttention, AgreesWithFourLanesAndWithItselfInOtherTilesAndBlocks) {
  for (int pages = 0; pages < kElements; ++pages) {
    for (std::int64_t head_dim : {8, 24, 64, 72, 128}) {
      SCOPED_TRACE(fmt::format("{} pages, head_dim {}", dtype_text(kTypes[pages]), head_dim));
      const std::vector<float> wanted = attended(attention_kernels_baseline, {head_dim, 16, pages}, 100);
      const std::vector<float> came = attended(attention_kernels_emulated, {head_dim, 16, pages}, 100);
      for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(wanted[i], came[i], 2e-6) << "at " << i;
      for (std::int64_t rows : {1, 2, 3, 4, 5, 7})
        expect_same_bits(came, attended(attention_kernels_emulated, {head_dim, 16, pages}, rows), "tiles");
      for (std::int64_t block : {1, 5, 32})
        expect_same_bits(came, attended(attention_kernels_emulated, {head_dim, block, pages}, 100), "blocks");
    }
  }
}

}  // namespace weft::cpu::cpu_sixteen_lanes_test
