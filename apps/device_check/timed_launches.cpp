#include "apps/device_check/timed_launches.h"

#include <algorithm>

#include <fmt/core.h>

#include "apps/device_check/timed_heads.h"
#include "base/error.h"
#include "kernels/cuda/lib/attention_plan.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/mathematics.h"
#include "kernels/cuda/lib/row_launch.h"
#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"

namespace weft::device_check {

using namespace cuda;

namespace {

constexpr std::int64_t kGroup = 128;
// A prime: its multiples, modulo a number of rows or pages that it does not divide, meet each once and far apart.
constexpr std::uint64_t kFarApart = 7919;

ScaleLayout places_of(const TimedBuffers& buffers, TimedSize size) {
  return {static_cast<float*>(buffers.scales), static_cast<std::uint32_t>(size.columns / kGroup), 1};
}

TimedLaunch fused_silu(SiluAndMulDesign design, bool rounds, Mathematics mathematics = Mathematics::device) {
  return [=](Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
    const SiluAndMulPerBlockQuant kernel{.rounds = rounds, .design = design, .mathematics = mathematics};
    SiluAndMulPerBlockQuantArguments arguments{.x = buffers.x,
                                               .codes = buffers.output,
                                               .places = places_of(buffers, size),
                                               .rows = size.rows,
                                               .columns = size.columns};
    const LaunchShape shape = kernel.plan(arguments);
    launch(kernel.kernel_name(), shape, arguments);
  };
}

void silu_and_mul(Launcher& launch, const std::string& kernel, const TimedBuffers& buffers, void* output,
                  TimedSize size) {
  SiluAndMulArguments arguments{.x = buffers.x,
                                .output = output,
                                .scale = static_cast<const float*>(buffers.given),
                                .group_scales = static_cast<std::uint8_t*>(buffers.scales),
                                .rows = size.rows,
                                .columns = size.columns};
  const LaunchShape shape = plan_silu_and_mul(kernel, DType::bf16, false, arguments);
  launch(kernel, shape, arguments);
}
TimedLaunch plain_silu(const char* epilogue, Mathematics mathematics = Mathematics::device) {
  return [kernel = fmt::format("silu_and_mul_bf16_{}_{}", epilogue, ending_of(mathematics))](
             Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
    silu_and_mul(launch, kernel, buffers, buffers.output, size);
  };
}

void group_quant(Launcher& launch, const TimedBuffers& buffers, const void* x, TimedSize size) {
  const char* kernel = "per_token_group_quant_bf16_f8e4m3_128";
  PerTokenGroupQuantArguments arguments{
      .x = x, .codes = buffers.output, .places = places_of(buffers, size), .rows = size.rows, .columns = size.columns};
  const LaunchShape shape =
      plan_groups(kernel, {.rows = size.rows, .groups = size.columns / kGroup, .group_size = kGroup}, arguments.places,
                  arguments.order);
  launch(kernel, shape, arguments);
}

void token_quant(Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
  launch("dynamic_per_token_quant_bf16_i8", plan_rows(size.rows),
         DynamicPerTokenQuantArguments{.x = buffers.x,
                                       .output = buffers.output,
                                       .places = {static_cast<float*>(buffers.scales), 1, 1},
                                       .rule = {.codes_by_reciprocal = true},
                                       .columns = size.columns});
}

TimedLaunch norm(bool adds, const char* epilogue, Mathematics mathematics = Mathematics::device) {
  const std::string kernel =
      fmt::format("{}rms_norm_bf16_{}_{}", adds ? "fused_add_" : "", epilogue, ending_of(mathematics));
  return [kernel, adds](Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
    const bool is_of_token = kernel.find("token") != std::string::npos;
    const ScaleLayout of_token{static_cast<float*>(buffers.scales), 1, 1};
    launch(kernel, plan_rows(size.rows),
           RmsNormArguments{.x = buffers.x,
                            .residual = adds ? buffers.other : nullptr,
                            .residual_output = adds ? buffers.middle : nullptr,
                            .weight = buffers.weight,
                            .output = buffers.output,
                            .places = is_of_token ? of_token : places_of(buffers, size),
                            .rule = {.codes_by_reciprocal = kernel.find("token_i8") != std::string::npos},
                            .given_scale = static_cast<const float*>(buffers.given),
                            .epsilon = 1e-5f,
                            .columns = size.columns,
                            .variance_columns = size.columns,
                            .group = kGroup});
  };
}

// bf16, by numbers of 64 bits.
void gather_rows(Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
  const char* kernel = "gather_rows_16";
  GatherRowsArguments arguments{
      .from = buffers.x, .ids = buffers.scattered, .to = buffers.output, .ids_are_wide = true};
  const LaunchShape shape = plan_gather_rows(kernel, size.rows, size.columns / 8, arguments);
  launch(kernel, shape, arguments);
}

std::vector<TimedSubject> subjects_of_rows() {
  constexpr double kScale = 4.0 / kGroup;
  const std::vector<TimedSize> of_layer = {{128, 14336}, {1024, 14336}, {8192, 14336}};
  // From 1024 rows on the memory is to be the bound; of 128 a launch's own time is half.
  const std::vector<TimedSize> of_fused = {{128, 14336, 0.5}, {1024, 14336, 0.85}, {8192, 14336, 0.85}};
  const std::vector<TimedSize> of_norm = {{128, 4096}, {1024, 4096}, {8192, 4096}};
  const TimedLaunch unfused = [](Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
    silu_and_mul(launch, "silu_and_mul_bf16_plain_device", buffers, buffers.middle, size);
    group_quant(launch, buffers, buffers.middle, size);
  };
  const TimedLaunch quant = [](Launcher& launch, const TimedBuffers& buffers, TimedSize size) {
    group_quant(launch, buffers, buffers.x, size);
  };
  return {
      {"silu_and_mul + group-128 fp8, fused", of_fused, 5 + kScale, fused_silu(SiluAndMulDesign::fast, true)},
      {"the same, f32 between", of_layer, 5 + kScale, fused_silu(SiluAndMulDesign::fast, false)},
      {"the same, launched one by one", {of_layer[0]}, 5 + kScale, fused_silu(SiluAndMulDesign::fast, true), 0, false},
      {"the same, tree design", of_layer, 5 + kScale, fused_silu(SiluAndMulDesign::tree, true)},
      {"the same, two kernels", of_layer, 9 + kScale, unfused},
      {"the same, fused, reference math", of_layer, 5 + kScale,
       fused_silu(SiluAndMulDesign::fast, true, Mathematics::reference)},
      {"silu_and_mul", of_layer, 6, plain_silu("plain")},
      {"the same, reference math", of_layer, 6, plain_silu("plain", Mathematics::reference)},
      {"silu_and_mul + static fp8", of_layer, 5, plain_silu("static_f8e4m3_rounded")},
      {"silu_and_mul + fp4 groups", of_layer, 4 + 0.5 + 1.0 / 16, plain_silu("f4e2m1_rounded")},
      {"per_token_group_quant fp8", of_layer, 3 + kScale, quant},
      {"per-token quant int8", of_norm, 3, token_quant},
      {"rms_norm", of_norm, 4, norm(false, "plain")},
      {"the same, reference math", of_norm, 4, norm(false, "plain", Mathematics::reference)},
      {"rms_norm + static fp8", of_norm, 3, norm(false, "static_f8e4m3")},
      {"rms_norm + per-token fp8", of_norm, 3, norm(false, "token_f8e4m3")},
      {"rms_norm + per-token int8", of_norm, 3, norm(false, "token_i8")},
      {"rms_norm + group-128 fp8", of_norm, 3 + kScale, norm(false, "group_f8e4m3")},
      {"fused_add_rms_norm", of_norm, 8, norm(true, "plain")},
      {"the same, reference math", of_norm, 8, norm(true, "plain", Mathematics::reference)},
      {"fused_add_rms_norm + group-128 fp8", of_norm, 7 + kScale, norm(true, "group_f8e4m3")},
      {"rows by their numbers", of_norm, 4, gather_rows},
  };
}

std::vector<TimedSubject> subjects_of_heads() {
  constexpr std::uint32_t kDecoded = 4096;  // tokens of a sequence
  // Of angles, for a row of 4096 columns.
  constexpr double kAngles = 2.0 * kTimedHeadDim / 4096;
  const std::vector<TimedSize> of_rotation = {{128, 4096}, {1024, 4096}, {8192, 4096}};
  const std::vector<TimedSize> of_prompt = {{512, 4096}, {2048, 4096}, {8192, 4096}};
  const std::vector<TimedSize> of_decode = {{1, 4096}, {16, 4096}, {64, 4096}};
  // A query and what comes of it, 2 bytes each; for four queries a key and a value, of each token in the cache.
  constexpr double kPrompt = 4 + 1, kDecode = 4 + kDecoded;
  return {
      {"rotation of queries and keys", of_rotation, 5 + kAngles, timed_rotation({})},
      {"the same, heads normalized before", of_rotation, 5 + kAngles, timed_rotation({.normalizes = true})},
      {"rotation, keys and values into pages", of_rotation, 6 + kAngles, timed_rotation({.fills_pages = true})},
      {"attention of a prompt, matrix units", of_prompt, kPrompt, timed_attention(AttentionDesign::matrix_units, 0)},
      {"the same, multiply-adds", of_prompt, kPrompt, timed_attention(AttentionDesign::multiply_adds, 0)},
      {fmt::format("attention of single tokens, {} in each cache", kDecoded), of_decode, kDecode,
       timed_attention(AttentionDesign::multiply_adds, kDecoded), kDecoded},
  };
}

// Query starts, lengths and a block table whose pages are in no order.
std::vector<std::int32_t> batch_words(const TimedSubject& subject, TimedSize size) {
  const bool decodes = subject.decode_tokens > 0;
  const std::uint32_t sequences = decodes ? size.rows : 1, tokens = decodes ? subject.decode_tokens : size.rows;
  std::vector<std::int32_t> words;
  for (std::uint32_t i = 0; i <= sequences; ++i)
    words.push_back(static_cast<std::int32_t>(decodes ? i : i * size.rows));
  words.insert(words.end(), sequences, static_cast<std::int32_t>(tokens));
  const std::uint64_t pages = std::uint64_t{sequences} * (tokens / kPageTokens);
  for (std::uint64_t i = 0; i < pages; ++i) words.push_back(static_cast<std::int32_t>(i * kFarApart % pages));
  return words;
}

}  // namespace

Function Launcher::function(const std::string& kernel, std::size_t argument_bytes) {
  const std::optional<Function> found = target_.find(kernel, argument_bytes);
  if (!found) fail_device("[device check] the code has no kernel {}", kernel);
  return *found;
}

const std::vector<TimedSubject>& timed_subjects() {
  static const std::vector<TimedSubject> all = [] {
    std::vector<TimedSubject> subjects = subjects_of_rows();
    for (TimedSubject& subject : subjects_of_heads()) subjects.push_back(std::move(subject));
    return subjects;
  }();
  return all;
}

TimedBuffers add_buffers(DeviceMemory& memory, const TimedSubject& subject, TimedSize size) {
  const std::size_t elements = std::size_t{size.rows} * size.columns;
  // A token's keys and values are half as many numbers as its queries.
  const std::size_t of_page = std::size_t{kPageTokens} * size.columns / 2;
  const std::size_t tokens = std::size_t{size.rows} * std::max(subject.decode_tokens, 1u);
  std::vector<std::int64_t> numbers, scattered;
  for (std::uint64_t i = 0; i < size.rows; ++i) {
    numbers.push_back(static_cast<std::int64_t>(i));
    scattered.push_back(static_cast<std::int64_t>(i * kFarApart % (2 * std::uint64_t{size.rows})));
  }
  return {.x = memory.add_numbers(2 * elements),
          .other = memory.add_numbers(elements),
          .pages = memory.add_numbers((tokens + kPageTokens - 1) / kPageTokens * of_page),
          .weight = memory.add_numbers(size.columns),
          .angles = memory.add_numbers(std::size_t{size.rows} * kTimedHeadDim),
          .middle = memory.add(2 * elements),
          .output = memory.add(2 * elements),
          .scales = memory.add(elements / 16 + 4 * std::size_t{size.rows}),
          .given = memory.add_number(0.01f),
          .numbers = memory.add_words<std::int64_t>(numbers),
          .scattered = memory.add_words<std::int64_t>(scattered),
          .batch = memory.add_words<std::int32_t>(batch_words(subject, size)),
          .partials = static_cast<float*>(memory.add(kMostPartialBytes))};
}

}  // namespace weft::device_check
