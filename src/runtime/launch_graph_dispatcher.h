#pragma once

// Selects the capture that a batch runs with. Captures are made for some token counts; a batch takes the capture of its
// own count or of the next larger one. The keys and the fallback order are those of vLLM's dispatcher: a full capture,
// else a piecewise one, else none.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "options/options.h"
#include "runtime/replay_mode.h"

namespace weft {

// The properties of a batch that a capture depends on.
struct BatchDescriptor {
  std::int64_t num_tokens = 0;
  std::optional<std::int64_t> num_reqs = {};  // nullopt: any number of requests
  bool uniform = false;                       // each request has decode_query_len tokens
  bool has_lora = false;
  std::int64_t num_active_loras = 0;
  auto operator<=>(const BatchDescriptor&) const = default;
};

struct LaunchGraphSettings {
  ReplayMode mode = ReplayMode::none;
  Counts sizes = {};  // token counts to capture
  std::int64_t max_num_seqs = 1;
  std::int64_t decode_query_len = 1;  // tokens of a request in a decode step
  Counts compile_sizes = {};          // counts that padding must not change
  std::int64_t max_loras = 0;
  bool specialize_lora = true;         // batches without adapters get their own captures
  bool specialize_lora_count = false;  // separate captures for 1, 2, 4, ... adapters
};

class LaunchGraphDispatcher {
 public:
  // Captures nothing.
  LaunchGraphDispatcher() = default;
  // UserError for a compile size that padding would change, and for a size that is no multiple of decode_query_len
  // where decode batches have their own captures.
  explicit LaunchGraphDispatcher(LaunchGraphSettings settings);

  struct Batch {
    std::int64_t num_tokens = 0;
    bool uniform_decode = false;
    std::int64_t num_active_loras = 0;
  };
  struct Dispatch {
    ReplayMode mode = ReplayMode::none;
    // Padded to the capture's size. Without a capture only the token count is set, and it is not padded.
    BatchDescriptor descriptor = {};
    bool operator==(const Dispatch&) const = default;
  };
  static constexpr ReplayMode kSimpleModes[] = {ReplayMode::none, ReplayMode::piecewise, ReplayMode::full};
  // `allowed` are simple modes. InternalError when it is empty, or when no capture fits and `none` is not allowed.
  Dispatch dispatch(const Batch& batch, std::span<const ReplayMode> allowed = kSimpleModes) const;

  // The captures to make, in order. Full captures precede piecewise ones, because most steps are decode steps. Within
  // each mode the smallest is first, because a single request runs with it; then the largest first, as in vLLM.
  std::vector<Dispatch> captures() const;

  ReplayMode mode() const { return settings_.mode; }
  const Counts& sizes() const { return settings_.sizes; }  // ascending
  // The largest captured count; 0 when nothing is captured.
  std::int64_t max_size() const { return settings_.sizes.empty() ? 0 : settings_.sizes.back(); }
  // The captured size that `num_tokens` runs with, for 0 <= num_tokens <= max_size(); 0 for 0.
  std::int64_t padded(std::int64_t num_tokens) const;

 private:
  using Keys = std::vector<BatchDescriptor>;  // sorted
  Counts lora_cases() const;
  void add_keys(ReplayMode mode, BatchDescriptor key);
  BatchDescriptor descriptor_for(const Batch& batch) const;
  bool has_key(const Keys& keys, const BatchDescriptor& key) const;

  LaunchGraphSettings settings_;
  Counts lora_counts_;  // captured counts of adapters, without 0
  Counts padded_;       // by token count
  Keys piecewise_, full_;
};

}  // namespace weft
