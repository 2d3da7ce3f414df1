#pragma once

// Computes the effective options from the requested ones. Open options get their value, and conflicts between options
// are resolved. Each change of a requested option is reported with its reason.

#include <string>
#include <vector>

#include "options/options.h"

namespace weft {

struct OptionDifference {
  std::string option;
  std::string alias;      // the other name by which the option was given; "" for its own
  std::string requested;  // as in value_text; the requested value, or "auto"
  std::string effective;
  std::string reason;

  // "cc.compile_ranges_endpoints (cc.compile_ranges_split_points) is empty instead of 8192: ", and the reason.
  std::string text() const;
};

struct EffectiveOptions {
  Options options;
  // Only for requested options, in the order in which they were resolved.
  std::vector<OptionDifference> differences;
};

// The effective options of this program, for any model:
//   mode                     none with enforce-eager, or at level 0 if not requested; otherwise weft
//   cudagraph_mode           NONE in mode none and at level 0; PIECEWISE at level 1; FULL at higher levels. On a device
//                            other than the CPU, FULL_AND_PIECEWISE replaces FULL
//   max_num_seqs             at most max-num-batched-tokens
//   cudagraph_capture_sizes  if none are given, the default sizes up to a limit, max-num-batched-tokens and
//                            max-num-seqs; sorted, without sizes above a limit
//   max_cudagraph_capture_size  the largest capture size; UserError if both are given and disagree
//   compile_sizes            only numbers, sorted, without numbers above max-num-batched-tokens
//   tuning_budget            0 if no size is compiled exactly
//   compile_ranges_split_points  sorted, without 1 and without points that are not below max-num-batched-tokens
//   eliminate_noops          on
//   fuse_*                   off at level 0, on at higher levels
//   enable_sp                off
//   kv_cache_dtype           f32 in exact precision, otherwise the model decides
// max-model-len, dtype and threads stay open: the model and the machine decide them. UserError for options that
// contradict each other.
EffectiveOptions effective_options(const Options& requested);

// The option that makes ops run one by one without compilation, "-O0" or the like; "" if the options compile. The
// result is the same for requested and for effective options.
std::string eager_option(const Options& options);

// Adds --enforce-eager and removes options that contradict it, for callers that always run eagerly.
void run_eagerly(Options& options);

// Removes the options that disable compilation, for callers that show compilation results and run nothing.
void compile_anyway(Options& options);

// 1, 2, 4, then 8 to 256 by 8, then by 16: the sizes up to `largest`, which is at least 0.
Counts default_capture_sizes(std::int64_t largest);

// The tuning budget in seconds that `max_autotune` means.
inline constexpr std::int64_t kAutotuneSeconds = 10;

// Replaces max_autotune or coordinate_descent_tuning in cc.inductor_compile_config by a tuning-budget of
// kAutotuneSeconds, unless tuning-budget itself was requested, and removes them from cc.inductor_compile_config.
// Returns the new spelling; "" if neither is true.
std::string translate_autotuning(Options& options);

}  // namespace weft
