#pragma once

// Which capture a batch runs with. Captures are made for some token counts; a batch takes the one of its own count, or
// of the next larger one. Keys and fall-back are those of vLLM's dispatcher: a full capture before a piecewise one
// before none.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/options.h"
#include "runtime/replay_mode.h"

namespace weft {

// What a capture depends on of a batch.
struct BatchDescriptor {
  std::int64_t num_tokens = 0;
  std::optional<std::int64_t> num_reqs = {};  // nothing: any number of requests
  bool uniform = false;                       // every request has as many tokens as a decode step gives it
  bool has_lora = false;
  std::int64_t num_active_loras = 0;
  auto operator<=>(const BatchDescriptor&) const = default;
};

struct CaptureSettings {
  ReplayMode mode = ReplayMode::none;
  Counts sizes = {};  // token counts to capture
  std::int64_t max_num_seqs = 1;
  std::int64_t decode_query_len = 1;  // tokens of a request in a decode step
  Counts compile_sizes = {};          // where batches are padded: these counts must stay what they are
  std::int64_t max_loras = 0;
  bool specialize_lora = true;         // batches without adapters are captured, too
  bool specialize_lora_count = false;  // separate captures for 1, 2, 4, ... adapters
};

class CaptureDispatcher {
 public:
  // Captures nothing.
  CaptureDispatcher() = default;
  // UserError for a compile size that padding would change, and for a size that is no multiple of decode_query_len
  // where decode batches are captured apart.
  explicit CaptureDispatcher(CaptureSettings settings);

  struct Batch {
    std::int64_t num_tokens = 0;
    bool uniform_decode = false;
    std::int64_t num_active_loras = 0;
  };
  struct Dispatch {
    ReplayMode mode = ReplayMode::none;
    // Padded to the capture's size; without a capture, the token count as it is and nothing else.
    BatchDescriptor descriptor = {};
    bool operator==(const Dispatch&) const = default;
  };
  static constexpr ReplayMode kSimpleModes[] = {ReplayMode::none, ReplayMode::piecewise, ReplayMode::full};
  // `allowed` are simple modes. InternalError when there are none, or when no capture fits and none is not allowed.
  Dispatch dispatch(const Batch& batch, std::span<const ReplayMode> allowed = kSimpleModes) const;

  // What to capture, in this order: full before piecewise, as decode steps are most of all steps; of each first the
  // smallest, which a request by itself runs with, then the largest first, as in vLLM.
  std::vector<Dispatch> captures() const;

  ReplayMode mode() const { return settings_.mode; }
  const Counts& sizes() const { return settings_.sizes; }  // ascending
  // The largest count that is captured; 0 when nothing is.
  std::int64_t max_size() const { return settings_.sizes.empty() ? 0 : settings_.sizes.back(); }
  // The size whose capture `num_tokens` runs with, for 0 <= num_tokens <= max_size(); 0 for 0.
  std::int64_t padded(std::int64_t num_tokens) const;

 private:
  using Keys = std::vector<BatchDescriptor>;  // sorted
  Counts lora_cases() const;
  void add_keys(ReplayMode mode, BatchDescriptor key);
  BatchDescriptor descriptor_for(const Batch& batch) const;
  bool has_key(const Keys& keys, const BatchDescriptor& key) const;

  CaptureSettings settings_;
  Counts lora_counts_;  // numbers of adapters that are captured, besides none
  Counts padded_;       // by token count
  Keys piecewise_, full_;
};

}  // namespace weft
