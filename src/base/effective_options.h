#pragma once

// From what was asked for to what will run: options that are left open get their value, options that exclude each other
// are settled, and every change of something that was asked for comes with its reason. Nothing is changed in silence.

#include <span>
#include <string>
#include <vector>

#include "base/options.h"

namespace weft {

struct OptionDifference {
  std::string option;
  std::string requested;  // as in value_text; what was given, or "auto"
  std::string effective;
  std::string reason;
};

struct EffectiveOptions {
  Options options;
  // Only of options that were asked for, in the order in which they were settled.
  std::vector<OptionDifference> differences;
};

// What the options mean on this program, for any model:
//   mode                     none with enforce-eager, or at level 0 where none was given; otherwise weft
//   cudagraph_mode           NONE in mode none and at level 0; PIECEWISE at level 1; above FULL, but on a device
//                            FULL_AND_PIECEWISE, which FULL is there, too
//   max_num_seqs             at most max-num-batched-tokens
//   cudagraph_capture_sizes  if none are given, the default sizes up to a limit, max-num-batched-tokens and
//                            max-num-seqs; sorted, without those above a limit
//   max_cudagraph_capture_size  the largest of them; UserError when both are given and it is another
//   compile_sizes            numbers only, sorted, without those above max-num-batched-tokens
//   tuning_budget            0 where no size is compiled exactly
//   compile_ranges_split_points  sorted, without 1 and those that are not below max-num-batched-tokens
//   eliminate_noops          on
//   fuse_*                   off at level 0, on above
//   enable_sp                off
//   kv_cache_dtype           f32 in exact precision, otherwise the model decides
// max-model-len, dtype and threads stay open: the model and the machine decide. UserError for options that contradict
// each other.
EffectiveOptions effective_options(const Options& requested);

// The option that has ops run one by one with nothing compiled, "-O0" or the like; "" where things are compiled. Of
// options as they were asked for or as they came out, which say the same.
std::string eager_option(const Options& options);

// Adds --enforce-eager, and takes out what contradicts it: for who runs so whatever was asked for.
void run_eagerly(Options& options);

// Takes out what has ops run one by one: for who shows what compiling gives, and runs nothing.
void compile_anyway(Options& options);

// 1, 2, 4, then 8 to 256 by 8, then by 16: the sizes up to `largest`, which is at least 0.
Counts default_capture_sizes(std::int64_t largest);

// Seconds that `max_autotune` stands for.
inline constexpr std::int64_t kAutotuneSeconds = 10;

// Turns max_autotune or coordinate_descent_tuning of cc.inductor_compile_config into a tuning-budget of
// kAutotuneSeconds, unless that was asked for itself, and takes them out of it. Returns the new spelling; "" where
// neither is true.
std::string translate_autotuning(Options& options);

// Turns cc.custom_ops into ir-op-priority and empties it: `none` puts native first for every op but the `+` ones, `-op`
// for that op. Priorities that were asked for stay. Returns the new spelling, one per op, e.g.
// "--ir-op-priority.rms_norm=native". UserError for an op that is not among `op_names`.
std::vector<std::string> translate_custom_ops(Options& options, std::span<const std::string> op_names);

}  // namespace weft
