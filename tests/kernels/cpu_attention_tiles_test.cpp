// attend_in_tiles with emulated tiles, and with the processor's where it has them.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tensor/bfloat16.h"
#include "tests/kernels/cpu_rows_support.h"
#include "tests/kernels/emulated_rows.h"

namespace weft::cpu::cpu_attention_tiles_test {

struct Case {
  std::int64_t head_dim = 64;
  std::int64_t tokens = 600;
  std::int64_t query_tokens = 40;  // the last ones
  std::int64_t group = 3;
  std::int64_t block = 16;
  std::int64_t window = kNoWindow;
  float softcap = 0;
  bool has_sinks = false;
  bool keys_are_values = false;
  std::int64_t ahead = 0;
  std::int64_t bias_columns = 0;  // 0: no bias
};

// Values of one KV head, rounded to bf16.
struct Inputs {
  explicit Inputs(const Case& test) : test(test) {
    query = values(test.query_tokens * test.group * test.head_dim, 1);
    key = values(test.tokens * test.head_dim, 2);
    value = test.keys_are_values ? key : values(test.tokens * test.head_dim, 3);
    sinks = values(test.group, 4);
    if (test.bias_columns > 0) bias = values(test.group * test.bias_columns, 5);
  }
  static std::vector<float> values(std::int64_t count, std::uint32_t seed) {
    std::vector<float> values = normal_values(static_cast<std::size_t>(count), seed);
    for (float& one : values) one = rounded(DType::bf16, one);
    return values;
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(test.head_dim)); }

  Case test;
  std::vector<float> query, key, value, sinks, bias;
};

using Attend = void (*)(const AttentionTask&);

// Pages in descending order; what is beyond the last token is NaN.
class Pages {
 public:
  explicit Pages(const Inputs& inputs) {
    const Case& test = inputs.test;
    const std::int64_t blocks = (test.tokens + test.block - 1) / test.block;
    elements_of_page = (test.keys_are_values ? 1 : 2) * test.block * test.head_dim;
    std::vector<float> all(static_cast<std::size_t>(blocks * elements_of_page), NAN);
    for (std::int64_t b = 0; b < blocks; ++b) table.push_back(static_cast<std::int32_t>(blocks - 1 - b));
    for (std::int64_t t = 0; t < test.tokens; ++t) {
      float* page = all.data() + table[static_cast<std::size_t>(t / test.block)] * elements_of_page;
      for (std::int64_t d = 0; d < test.head_dim; ++d) {
        const auto from = static_cast<std::size_t>(t * test.head_dim + d);
        page[d * test.block + t % test.block] = inputs.key[from];
        if (!test.keys_are_values) page[(test.block + t % test.block) * test.head_dim + d] = inputs.value[from];
      }
    }
    stored = tensor_of(DType::bf16, {static_cast<std::int64_t>(all.size())}, all);
  }
  Tensor stored;
  std::vector<std::int32_t> table;
  std::int64_t elements_of_page;
};

// Adds the partial results of a task's rows, which have all bits of f32.
void add_partials(const AttentionTask& task, std::vector<float>& all) {
  const std::int64_t floats = attention_partial_floats(task.head_dim);
  for (std::int64_t row = 0; row < (task.last_row - task.first_row) * task.segments; ++row) {
    const float* partial = task.partials + row * floats;
    all.insert(all.end(), partial, partial + task.head_dim);
    all.insert(all.end(), partial + floats - 16, partial + floats - 14);  // the maximum and the total
  }
}

// Rows are attended to `rows_at_once` at a time; with `all_partials`, each segment by itself.
std::vector<float> attended(Attend attend, const Inputs& inputs, std::int64_t rows_at_once,
                            std::vector<float>* all_partials = nullptr) {
  const Case& test = inputs.test;
  const Pages pages(inputs);
  const std::int64_t width = test.group * test.head_dim, rows = test.query_tokens * test.group;
  const Tensor query = tensor_of(DType::bf16, {test.query_tokens, width}, inputs.query);
  const Tensor sinks = tensor_of(DType::bf16, {test.group}, inputs.sinks);
  const Tensor output = Tensor::empty(query.meta);
  const auto scratch = Storage::allocate(attention_scratch_bytes(test.head_dim));
  const std::int64_t segments = (test.tokens + kAttentionSegment - 1) / kAttentionSegment;
  const auto partials = Storage::allocate(4 * kAttentionTaskRows * segments * attention_partial_floats(test.head_dim));
  for (std::int64_t row = 0; row < rows; row += rows_at_once) {
    AttentionTask task{.query = query.data(),
                       .output = output.data(),
                       .element = Element::bf16,
                       .query_token_stride = width,
                       .output_token_stride = width,
                       .first_row = row,
                       .last_row = std::min(row + rows_at_once, rows),
                       .group = test.group,
                       .first_length = test.tokens - test.query_tokens + 1,
                       .window = test.window,
                       .ahead = test.ahead,
                       .all_tokens = test.tokens,
                       .head_dim = test.head_dim,
                       .scale = inputs.scale(),
                       .softcap = test.softcap,
                       .sinks = test.has_sinks ? sinks.data() : nullptr,
                       .sink_element = Element::bf16,
                       .bias = test.bias_columns > 0 ? inputs.bias.data() : nullptr,
                       .bias_columns = std::max<std::int64_t>(1, test.bias_columns),
                       .pages = pages.stored.data(),
                       .page_elements = pages.elements_of_page,
                       .keys_are_values = test.keys_are_values,
                       .block = test.block,
                       .block_table = pages.table.data(),
                       .scratch = scratch->data()};
    if (all_partials == nullptr) {
      attend(task);
      continue;
    }
    task.partials = reinterpret_cast<float*>(partials->data());
    task.kept_segment = first_in_window(task.first_length + row / test.group, test.window) / kAttentionSegment;
    task.segments = segments - task.kept_segment;
    for (std::int64_t s = segments; s-- > task.kept_segment;) {
      task.first_segment = s;
      task.last_segment = s + 1;
      attend(task);
    }
    add_partials(task, *all_partials);
    attention_kernels_emulated.finish(task);
  }
  return values_of(output);
}

std::vector<double> exact(const Inputs& inputs) {
  const Case& test = inputs.test;
  std::vector<double> output;
  for (std::int64_t row = 0; row < test.query_tokens * test.group; ++row) {
    const std::int64_t length = test.tokens - test.query_tokens + 1 + row / test.group;
    std::vector<double> weights, sums(static_cast<std::size_t>(test.head_dim));
    const std::int64_t first = first_in_window(length, test.window),
                       end = end_of_attention(length, test.ahead, test.tokens);
    for (std::int64_t t = first; t < end; ++t) {
      double score = 0;
      for (std::int64_t d = 0; d < test.head_dim; ++d)
        score += double{inputs.query[row * test.head_dim + d]} * inputs.key[t * test.head_dim + d];
      score *= inputs.scale();
      weights.push_back(test.softcap == 0 ? score : test.softcap * std::tanh(score / test.softcap));
      if (test.bias_columns == 0) continue;
      const std::int64_t column =
          std::clamp<std::int64_t>(t - (length - 1) + test.bias_columns / 2, 0, test.bias_columns - 1);
      weights.back() += inputs.bias[row % test.group * test.bias_columns + column];
    }
    double total = test.has_sinks ? std::exp(inputs.sinks[row % test.group]) : 0;
    for (double& weight : weights) total += weight = std::exp(weight);
    for (std::int64_t t = first; t < end; ++t)
      for (std::int64_t d = 0; d < test.head_dim; ++d)
        sums[d] += weights[t - first] / total * inputs.value[t * test.head_dim + d];
    output.insert(output.end(), sums.begin(), sums.end());
  }
  return output;
}

const std::vector<std::pair<const char*, Attend>>& ways() {
  static const std::vector<std::pair<const char*, Attend>> ways = [] {
    std::vector<std::pair<const char*, Attend>> all{{"emulated", attend_in_tiles_emulated}};
    if (describe_cpu("", 1).host >= CpuFeatures::amx) all.emplace_back("amx", attend_in_tiles_amx);
    return all;
  }();
  return ways;
}

template <class Check>
void for_each_way(Check check) {
  for (const auto& [name, attend] : ways()) {
    SCOPED_TRACE(name);
    check(attend);
  }
}

TEST(CpuAttentionTiles, AgreesWithDoublePrecision) {
  for (const Case& test :
       {Case{}, Case{.head_dim = 8, .group = 1}, Case{.head_dim = 24, .block = 5},
        Case{.head_dim = 72, .tokens = 40, .group = 8, .block = 32}, Case{.head_dim = 128, .group = 4},
        Case{.window = 100}, Case{.tokens = 900, .window = 300}, Case{.softcap = 5}, Case{.has_sinks = true},
        Case{.tokens = 1, .query_tokens = 1, .group = 9}, Case{.head_dim = 96, .group = 5, .keys_are_values = true},
        Case{.head_dim = 24, .block = 5, .keys_are_values = true},
        Case{.head_dim = 24, .query_tokens = 1, .group = 3, .keys_are_values = true},
        Case{.query_tokens = 600, .group = 1, .ahead = kNoWindow},
        Case{.tokens = 530, .query_tokens = 530, .window = 100, .ahead = 99}, Case{.window = 20, .ahead = 7},
        Case{.bias_columns = 1199}, Case{.softcap = 5, .has_sinks = true, .bias_columns = 101},
        Case{.tokens = 530, .query_tokens = 530, .window = 300, .ahead = kNoWindow, .bias_columns = 257}}) {
    SCOPED_TRACE(fmt::format("head_dim {}, {} tokens, group {}, window {}, ahead {}, values=keys {}", test.head_dim,
                             test.tokens, test.group, test.window, test.ahead, test.keys_are_values));
    const Inputs inputs(test);
    const std::vector<double> wanted = exact(inputs);
    for_each_way([&](Attend attend) {
      const std::vector<float> came = attended(attend, inputs, kAttentionTaskRows);
      ASSERT_EQ(came.size(), wanted.size());
      for (std::size_t i = 0; i < came.size(); ++i)
        ASSERT_NEAR(came[i], wanted[i], 8e-3 * (1 + std::fabs(wanted[i]))) << "at " << i;
    });
  }
}

TEST(CpuAttentionTiles, GivesARowTheSameBitsWhateverTheOtherRowsTheBlocksAndTheParts) {
  for (const Case& test :
       {Case{.tokens = 290, .query_tokens = 18}, Case{.head_dim = 24, .tokens = 290, .query_tokens = 20, .window = 100},
        Case{.head_dim = 8, .tokens = 40, .query_tokens = 40, .group = 1},
        Case{.head_dim = 72, .tokens = 530, .query_tokens = 12, .window = 300, .softcap = 5},
        Case{.head_dim = 16, .tokens = 290, .query_tokens = 7, .group = 7, .has_sinks = true},
        Case{.head_dim = 32, .tokens = 290, .query_tokens = 60, .group = 1, .ahead = kNoWindow},
        Case{.head_dim = 16, .tokens = 530, .query_tokens = 40, .window = 30, .ahead = 29},
        Case{.head_dim = 16, .tokens = 530, .query_tokens = 13, .group = 3, .bias_columns = 501},
        Case{.head_dim = 16, .tokens = 530, .query_tokens = 40, .ahead = kNoWindow, .bias_columns = 61}}) {
    const Inputs inputs(test);
    for_each_way([&](Attend attend) {
      const std::vector<float> wanted = attended(attend, inputs, kAttentionTaskRows);
      std::vector<float> wanted_partials;
      expect_same_bits(wanted, attended(attend, inputs, kAttentionTaskRows, &wanted_partials), "segment by segment");
      for (std::int64_t rows : {1, 2, 3, 4, 5, 16, 17, 33}) {
        const std::string of_rows = fmt::format("{} rows at once", rows);
        std::vector<float> partials;
        expect_same_bits(wanted, attended(attend, inputs, rows), of_rows);
        expect_same_bits(wanted, attended(attend, inputs, rows, &partials), of_rows + ", segment by segment");
        expect_same_bits(wanted_partials, partials, of_rows + ", partial results");
      }
      for (std::int64_t block : {5, 32}) {
        Inputs other = inputs;
        other.test.block = block;
        expect_same_bits(wanted, attended(attend, other, kAttentionTaskRows), fmt::format("blocks of {}", block));
      }
    });
  }
}

// One token has values or a key that are NaN or infinite.
TEST(CpuAttentionTiles, KeepsNumbersThatAreNotFiniteFromRowsThatDoNotSeeThem) {
  const Case test{.head_dim = 32, .tokens = 300, .query_tokens = 60, .group = 2, .window = 20};
  const Inputs clean(test);
  constexpr std::int64_t kToken = 270;
  for (const float wrong : {NAN, HUGE_VALF}) {
    for (const bool is_key : {false, true}) {
      Inputs broken = clean;
      (is_key ? broken.key : broken.value)[kToken * test.head_dim] = wrong;
      for_each_way([&](Attend attend) {
        const std::vector<float> wanted = attended(attend, clean, kAttentionTaskRows);
        const std::vector<float> came = attended(attend, broken, kAttentionTaskRows);
        for (std::int64_t row = 0; row < test.query_tokens * test.group; ++row) {
          const std::int64_t length = test.tokens - test.query_tokens + 1 + row / test.group, at = row * test.head_dim;
          const bool sees = length > kToken && first_in_window(length, test.window) <= kToken;
          if (sees && std::isnan(wrong)) {
            EXPECT_TRUE(std::isnan(came[at])) << row;
          } else if (!sees) {
            expect_same_bits({wanted.begin() + at, wanted.begin() + at + test.head_dim},
                             {came.begin() + at, came.begin() + at + test.head_dim}, fmt::format("row {}", row));
          }
        }
      });
    }
  }
}

}  // namespace weft::cpu::cpu_attention_tiles_test
