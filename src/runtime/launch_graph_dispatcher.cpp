#include "runtime/launch_graph_dispatcher.h"

#include <algorithm>

#include "base/error.h"
#include "base/sort.h"

namespace weft {
namespace {

Counts captured_lora_counts(const LaunchGraphSettings& settings) {
  Counts counts;
  if (settings.max_loras == 0) return counts;
  for (std::int64_t count = 1; settings.specialize_lora_count && count <= settings.max_loras; count *= 2)
    counts.push_back(count);
  counts.push_back(settings.max_loras + 1);
  sort_without_repeats(counts);
  return counts;
}

}  // namespace

LaunchGraphDispatcher::LaunchGraphDispatcher(LaunchGraphSettings settings) : settings_(std::move(settings)) {
  sort_without_repeats(settings_.sizes);
  if (settings_.mode == ReplayMode::none) settings_.sizes.clear();
  lora_counts_ = captured_lora_counts(settings_);
  padded_.push_back(0);
  for (const std::int64_t size : settings_.sizes)
    while (static_cast<std::int64_t>(padded_.size()) <= size) padded_.push_back(size);
  for (const std::int64_t size : settings_.compile_sizes)
    USER_CHECK(size > max_size() || padded(size) == size,
               "[cc.compile_sizes] must be token counts that are captured, but {} would be padded to {}", size,
               padded(size));

  const ReplayMode mixed = mixed_mode(settings_.mode), decode = decode_mode(settings_.mode);
  const std::int64_t query_len = settings_.decode_query_len, most = settings_.max_num_seqs;
  for (const std::int64_t size : settings_.sizes)
    for (const std::int64_t loras : lora_cases()) {
      BatchDescriptor key{.num_tokens = size, .has_lora = loras > 0, .num_active_loras = loras};
      // A piece does not depend on the number of requests; a whole forward holds attention, which may.
      if (mixed == ReplayMode::full) key.num_reqs = std::min(size, most);
      if (mixed != ReplayMode::none) add_keys(mixed, key);
      if (decode != ReplayMode::full || !is_pair(settings_.mode) || size < query_len || size > query_len * most)
        continue;
      USER_CHECK(size % query_len == 0,
                 "[cc.cudagraph_capture_sizes] must be multiples of the {} tokens that a request has in a decode step, "
                 "but one is {}",
                 query_len, size);
      key.num_reqs = std::min(size / query_len, most);
      key.uniform = true;
      add_keys(ReplayMode::full, key);
    }
}

Counts LaunchGraphDispatcher::lora_cases() const {
  Counts cases = lora_counts_;
  if (cases.empty() || settings_.specialize_lora) cases.insert(cases.begin(), 0);
  return cases;
}

void LaunchGraphDispatcher::add_keys(ReplayMode mode, BatchDescriptor key) {
  Keys& keys = mode == ReplayMode::full ? full_ : piecewise_;
  keys.insert(std::upper_bound(keys.begin(), keys.end(), key), key);
}

bool LaunchGraphDispatcher::has_key(const Keys& keys, const BatchDescriptor& key) const {
  return std::binary_search(keys.begin(), keys.end(), key);
}

std::int64_t LaunchGraphDispatcher::padded(std::int64_t num_tokens) const {
  return padded_.at(static_cast<std::size_t>(num_tokens));
}

BatchDescriptor LaunchGraphDispatcher::descriptor_for(const Batch& batch) const {
  BatchDescriptor descriptor{.num_tokens = padded(batch.num_tokens), .has_lora = batch.num_active_loras > 0};
  descriptor.uniform = batch.uniform_decode && is_pair(settings_.mode);
  const std::int64_t requests =
      descriptor.uniform ? descriptor.num_tokens / settings_.decode_query_len : descriptor.num_tokens;
  descriptor.num_reqs = std::min(requests, settings_.max_num_seqs);
  descriptor.num_active_loras = batch.num_active_loras;
  if (descriptor.has_lora) {
    const auto captured = std::lower_bound(lora_counts_.begin(), lora_counts_.end(), batch.num_active_loras);
    if (captured != lora_counts_.end()) descriptor.num_active_loras = *captured;
  }
  return descriptor;
}

LaunchGraphDispatcher::Dispatch LaunchGraphDispatcher::dispatch(const Batch& batch,
                                                                std::span<const ReplayMode> allowed) const {
  CHECK(!allowed.empty(), "a batch must be allowed to run in some mode");
  const auto may = [&](ReplayMode mode) { return std::find(allowed.begin(), allowed.end(), mode) != allowed.end(); };
  const Dispatch uncaptured{ReplayMode::none, {.num_tokens = batch.num_tokens}};
  const bool only_none = !may(ReplayMode::piecewise) && !may(ReplayMode::full);
  if (only_none || batch.num_tokens > max_size()) return uncaptured;

  BatchDescriptor descriptor = descriptor_for(batch);
  if (may(ReplayMode::full) && has_key(full_, descriptor)) return {ReplayMode::full, descriptor};
  descriptor.num_reqs.reset();
  descriptor.uniform = false;
  if (may(ReplayMode::piecewise) && has_key(piecewise_, descriptor)) return {ReplayMode::piecewise, descriptor};
  CHECK(may(ReplayMode::none), "{} tokens have no capture, but must run with one", batch.num_tokens);
  return uncaptured;
}

std::vector<LaunchGraphDispatcher::Dispatch> LaunchGraphDispatcher::captures() const {
  std::vector<Dispatch> all;
  for (const auto& [mode, keys] :
       {std::pair(ReplayMode::full, &full_), std::pair(ReplayMode::piecewise, &piecewise_)}) {
    const auto begin = static_cast<std::ptrdiff_t>(all.size());
    for (const BatchDescriptor& key : *keys) all.push_back({mode, key});
    std::stable_sort(all.begin() + begin, all.end(), [](const Dispatch& a, const Dispatch& b) {
      return std::pair(a.descriptor.num_tokens, a.descriptor.num_active_loras) >
             std::pair(b.descriptor.num_tokens, b.descriptor.num_active_loras);
    });
    if (!keys->empty()) std::rotate(all.begin() + begin, all.end() - 1, all.end());
  }
  return all;
}

}  // namespace weft
