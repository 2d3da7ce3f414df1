#include "options/effective_options.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/sort.h"
#include "base/text.h"
#include "options/options_text.h"

namespace weft {
namespace {

class Settlement {
 public:
  explicit Settlement(const Options& requested) : requested_(requested), result_{.options = requested} {}

  const Options& options() const { return result_.options; }

  template <class Type, class Owner>
  void settle(Type Owner::*member, std::string_view name, Type value, std::string_view reason) {
    if (result_.options.*member == value) return;
    result_.options.*member = std::move(value);
    if (!requested_.requested.contains(std::string(name))) return;
    const OptionRow* row = find_option(name);
    CHECK(row != nullptr, "[{}] is no option", name);
    result_.differences.push_back({.option = std::string(name),
                                   .alias = requested_.requested.at(std::string(name)).alias,
                                   .requested = value_text(requested_, *row),
                                   .effective = value_text(result_.options, *row),
                                   .reason = std::string(reason)});
  }

  EffectiveOptions take() { return std::move(result_); }

 private:
  const Options& requested_;
  EffectiveOptions result_;
};

Counts up_to(Counts counts, std::int64_t largest) {
  sort_without_repeats(counts);
  std::erase_if(counts, [&](std::int64_t count) { return count > largest; });
  return counts;
}

std::string level_text(const Options& options) { return fmt::format("-O{}", options.optimization_level); }

void settle_mode(Settlement& settlement) {
  const Options& options = settlement.options();
  const std::string eager = eager_option(options);
  if (!eager.empty()) return settlement.settle<std::string>(&Options::mode, "cc.mode", "none", eager);
  settlement.settle<std::string>(&Options::mode, "cc.mode", "weft",
                                 options.mode == "auto" ? level_text(options) : "there is one compiler");
}

// Returns the default sizes and those of full steps: the maximum number of tokens of a step, and the maximum number of
// sequences (a full decode step).
Counts sizes_to_capture(const Options& options) {
  if (!options.cudagraph_capture_sizes.empty())
    return up_to(options.cudagraph_capture_sizes, options.max_num_batched_tokens);
  constexpr std::int64_t kLargestDefault = 512;
  const bool is_limited = options.max_cudagraph_capture_size >= 0;
  std::int64_t largest =
      is_limited ? options.max_cudagraph_capture_size : std::min(2 * options.max_num_seqs, kLargestDefault);
  largest = std::min(largest, options.max_num_batched_tokens);
  Counts sizes = default_capture_sizes(largest);
  sizes.push_back(options.max_num_batched_tokens);
  if (!is_limited) sizes.push_back(options.max_num_seqs);
  return up_to(std::move(sizes), largest);
}

void settle_capture_sizes(Settlement& settlement) {
  const Options& options = settlement.options();
  constexpr std::string_view kSizes = "cc.cudagraph_capture_sizes", kMost = "cc.max_cudagraph_capture_size";
  if (options.cudagraph_mode == "NONE")
    return settlement.settle(&Options::cudagraph_capture_sizes, kSizes, Counts{}, "nothing is captured");
  Counts sizes = sizes_to_capture(options);
  const std::int64_t largest = sizes.empty() ? 0 : sizes.back();
  const Counts& given = options.cudagraph_capture_sizes;
  const bool are_both_given = !given.empty() && options.max_cudagraph_capture_size >= 0 &&
                              options.requested.contains(std::string(kSizes)) &&
                              options.requested.contains(std::string(kMost));
  const std::int64_t largest_given = given.empty() ? 0 : *std::max_element(given.begin(), given.end());
  USER_CHECK(!are_both_given || options.max_cudagraph_capture_size == largest_given,
             "[{}] must be the largest of {}, {}, but is {}", kMost, kSizes, largest_given,
             options.max_cudagraph_capture_size);
  settlement.settle(&Options::cudagraph_capture_sizes, kSizes, std::move(sizes),
                    fmt::format("only sizes up to max-num-batched-tokens = {} are captured, in order",
                                options.max_num_batched_tokens));
  if (largest > 0)
    settlement.settle(&Options::max_cudagraph_capture_size, kMost, largest, "the largest size that is captured");
}

// Returns the effective cudagraph_mode and the reason if it differs from the request.
std::pair<std::string, std::string> mode_to_capture(const Options& options) {
  if (options.mode == "none") return {"NONE", "nothing is compiled"};
  if (options.max_cudagraph_capture_size == 0) return {"NONE", "-cc.max_cudagraph_capture_size is 0"};
  if (sizes_to_capture(options).empty())
    return {"NONE", fmt::format("no size is at most max-num-batched-tokens = {}", options.max_num_batched_tokens)};
  const bool is_open = options.cudagraph_mode == "auto";
  const std::int64_t level = options.optimization_level;
  const std::string mode = !is_open ? options.cudagraph_mode : level >= 2 ? "FULL" : level == 1 ? "PIECEWISE" : "NONE";
  // On a device, the launches of attention depend on the number of sequences in a step. A step with prompts can have
  // any number of them, so only pure decode steps are captured as a whole.
  if (mode == "FULL" && options.device != "cpu")
    return {"FULL_AND_PIECEWISE",
            is_open ? level_text(options) : "on a device, steps of one token a sequence alone are captured as a whole"};
  return {mode, level_text(options)};
}

void settle_capture(Settlement& settlement) {
  auto [mode, reason] = mode_to_capture(settlement.options());
  settlement.settle(&Options::cudagraph_mode, "cc.cudagraph_mode", std::move(mode), reason);
  settle_capture_sizes(settlement);
}

void settle_sizes(Settlement& settlement) {
  const Options& options = settlement.options();
  const std::int64_t most_tokens = options.max_num_batched_tokens;
  Counts sizes;
  for (const std::string& word : options.compile_sizes) {
    if (word == "cudagraph_capture_sizes") {
      sizes.insert(sizes.end(), options.cudagraph_capture_sizes.begin(), options.cudagraph_capture_sizes.end());
    } else {
      sizes.push_back(human_integer(word, "cc.compile_sizes"));
    }
  }
  Words words;
  for (const std::int64_t size : up_to(std::move(sizes), most_tokens)) words.push_back(fmt::format("{}", size));
  settlement.settle(&Options::compile_sizes, "cc.compile_sizes", std::move(words),
                    fmt::format("only sizes up to max-num-batched-tokens = {} count, in order", most_tokens));

  Counts points = up_to(options.compile_ranges_split_points, most_tokens - 1);
  std::erase(points, 1);
  settlement.settle(
      &Options::compile_ranges_split_points, "cc.compile_ranges_split_points", std::move(points),
      fmt::format("only points above 1 and below max-num-batched-tokens = {} count, in order", most_tokens));
}

// Without measurements, the tuning budget must not be in a cache key: otherwise the same code would be compiled again
// under another key.
void settle_tuning(Settlement& settlement) {
  const std::string reason = reason_without_effect(settlement.options(), *find_option("tuning-budget"));
  if (!reason.empty()) settlement.settle(&Options::tuning_budget, "tuning-budget", Options().tuning_budget, reason);
}

// Rejects a check that could never fail or would always fail, since the user must have meant something else. `options`
// are the effective options.
void refuse_contradictions(const Options& options) {
  const std::string eager = eager_option(options);
  USER_CHECK(!options.require_codegen || eager.empty(), "[--require-codegen] no code is generated with {}", eager);
  USER_CHECK(options.expect_fusions.empty() || eager.empty(), "[--expect-fusions] nothing is fused with {}", eager);
  USER_CHECK(!options.forbid_lazy || options.capture != "lazy" || options.cudagraph_mode == "NONE",
             "[--forbid-lazy] nothing may be captured after ready, but --capture=lazy captures a forward when it first "
             "runs");
}

// Fusions are on from level 1. Removal of ops without effect is on at every level. Sequence parallelism is on only by
// request.
void settle_passes(Settlement& settlement) {
  const Options& options = settlement.options();
  for (const OptionRow& row : option_table()) {
    const auto* flag = std::get_if<OptionalFlag Options::*>(&row.member);
    if (flag == nullptr || row.effect != OptionEffect::code || options.**flag) continue;
    const bool is_fusion = *flag != &Options::eliminate_noops && *flag != &Options::enable_sp;
    const bool is_on = is_fusion ? options.optimization_level > 0 : *flag == &Options::eliminate_noops;
    settlement.settle(*flag, row.name, OptionalFlag(is_on), is_fusion ? level_text(options) : "the default");
  }
}

}  // namespace

std::string eager_option(const Options& options) {
  if (options.enforce_eager) return "--enforce-eager";
  const bool is_lowest = options.optimization_level == 0;
  if (options.mode == "none") return is_lowest ? "-O0" : "-cc.mode=none";
  return options.mode == "auto" && is_lowest ? "-O0" : "";
}

void run_eagerly(Options& options) {
  options.enforce_eager = true;
  options.require_codegen = false;
  options.expect_fusions.clear();
}

void compile_anyway(Options& options) {
  options.enforce_eager = false;
  if (!eager_option(options).empty()) options.mode = "weft";
}

Counts default_capture_sizes(std::int64_t largest) {
  Counts sizes;
  const auto add = [&](std::int64_t first, std::int64_t last, std::int64_t step) {
    for (std::int64_t size = first; size <= std::min(last, largest); size += step) sizes.push_back(size);
  };
  for (const std::int64_t size : {1, 2, 4}) add(size, size, 1);
  add(8, 256, 8);
  add(272, largest, 16);
  return sizes;
}

std::string OptionDifference::text() const {
  const auto shown = [](const std::string& value) { return value.empty() ? "empty" : value; };
  return fmt::format("{} is {} instead of {}: {}", alias.empty() ? option : fmt::format("{} ({})", alias, option),
                     shown(effective), shown(requested), reason);
}

EffectiveOptions effective_options(const Options& requested) {
  Settlement settlement(requested);
  settle_mode(settlement);
  settlement.settle(&Options::max_num_seqs, "max-num-seqs",
                    std::min(requested.max_num_seqs, requested.max_num_batched_tokens),
                    "a step holds at most max-num-batched-tokens");
  settle_capture(settlement);
  settle_sizes(settlement);
  settle_tuning(settlement);
  settle_passes(settlement);
  if (requested.kv_cache_dtype == "auto" && requested.activation_precision == "exact") {
    settlement.settle<std::string>(&Options::kv_cache_dtype, "kv-cache-dtype", "f32", "--activation-precision exact");
  }
  refuse_contradictions(settlement.options());
  return settlement.take();
}

std::string translate_autotuning(Options& options) {
  constexpr const char* kConfig = "cc.inductor_compile_config";
  Json config = options.inductor_compile_config.empty() ? Json() : parse_json(options.inductor_compile_config);
  bool is_on = false;
  for (const char* name : {"max_autotune", "coordinate_descent_tuning"}) {
    if (!config.is_object() || !config.contains(name) || !config[name].is_boolean()) continue;
    is_on = is_on || config[name].get<bool>();
    config.erase(name);
  }
  if (!is_on) return "";
  options.inductor_compile_config = config.empty() ? "" : json_ascii(config);
  if (!options.requested.contains("tuning-budget")) {
    options.tuning_budget = kAutotuneSeconds;
    if (const auto asked = options.requested.find(kConfig); asked != options.requested.end())
      options.requested["tuning-budget"] = {fmt::format("{}", kAutotuneSeconds), asked->second.source};
  }
  if (config.empty()) options.requested.erase(kConfig);
  return fmt::format("--tuning-budget={}", options.tuning_budget);
}

}  // namespace weft
