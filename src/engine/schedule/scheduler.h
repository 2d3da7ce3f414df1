#pragma once

// Decides which sequences a step runs, and how many tokens of each, as vLLM's V1 scheduler does. There is no prefill
// and no decode phase: each sequence wants all its tokens computed. Running sequences come first, in their order; then
// waiting ones, none of which overtakes another, as long as the pages of all their tokens are free. When a running
// sequence needs a page and none is free, the last one (by policy) gives up its pages and waits. This knows no models.
//
// The prefix cache has full blocks. Where pages can be copied, it also has checkpoints: the last block of a prompt
// without its last tokens, which a chat template writes differently once there is an answer, and the last block of a
// sequence that has ended. Otherwise a conversation would compute up to a block again in each turn, which is hundreds
// of tokens of a model with recurrent layers.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine_statistics.h"
#include "engine/schedule/kv_page_pool.h"
#include "engine/schedule/prompt_pace.h"

namespace weft {

struct ScheduledSequence {
  std::shared_ptr<const std::vector<int>> prompt_ids;
  std::span<const int> prompt;  // of prompt_ids, which choices of one request share
  std::vector<int> output;
  std::int64_t priority = 0;  // smaller is earlier; with SchedulerSettings::has_priorities
  std::string cache_salt;     // sequences with different ones share nothing in the prefix cache
  // Where the second text of a pair begins, whose tokens have BERT's token type 1.
  std::int64_t second_text = INT64_MAX;
  std::int64_t adapter = 0;  // which LoRA adapter computes it; sequences of different ones have different salts

  // Tokens that may follow. They are computed after the others if there is room for them, and their logits are wanted.
  std::vector<int> draft;
  // The logits of this position and of those after it are wanted; at the latest those of the last token. So no block
  // from there on is taken from the prefix cache; all blocks are published nevertheless.
  std::int64_t first_logit_row = INT64_MAX;
  // False: hidden states are wanted in place of logits. They are there for all rows of a step.
  bool wants_logits = true;

  // Changed by the scheduler alone, except for `computed`, which also grows with each step.
  std::vector<std::int32_t> pages;
  std::int64_t computed = 0;       // tokens whose keys and values are in the pages
  std::int64_t cached_tokens = 0;  // tokens of the prompt that were found in the prefix cache when it first ran
  std::int64_t preemptions = 0;

  std::int64_t token_count() const { return static_cast<std::int64_t>(prompt.size() + output.size()); }
  int token(std::int64_t at) const {
    const auto i = static_cast<std::size_t>(at);
    if (i < prompt.size()) return prompt[i];
    const std::size_t in_output = i - prompt.size();
    return in_output < output.size() ? output[in_output] : draft[in_output - output.size()];
  }

 private:
  friend class Scheduler;
  std::uint64_t arrival_ = 0;
  bool is_running_ = false;
  bool was_scheduled_ = false;
  KvPrefix prefix_;             // at the end of the published blocks
  std::int64_t published_ = 0;  // blocks
  std::int64_t kept_ = 0;       // tokens up to its last checkpoint, or that were not computed when it began to run
  std::list<ScheduledSequence*>::iterator at_;
};

struct Chunk {
  ScheduledSequence* sequence = nullptr;
  std::int64_t rows = 0;
  std::int64_t logit_rows = 0;  // the last of them, whose logits are wanted
  std::int64_t draft_rows = 0;  // the last of these, of tokens of the draft
};

struct SchedulerSettings {
  std::int64_t rows = 1;                    // most in a step
  std::int64_t logit_rows = INT64_MAX;      // most in a step
  std::int64_t sequences = 1;               // most in a step
  std::int64_t block = 1;                   // tokens in a page
  std::int64_t longest = 1;                 // tokens of the longest sequence
  std::int64_t long_prefill_threshold = 0;  // most rows of one sequence while there are others; 0: no such limit
  bool has_priorities = false;
  bool caches_prefixes = false;
  // Whether tokens of prompts and generated ones are computed differently. A chunk has tokens of one kind then, and the
  // prefix cache has blocks of prompts alone.
  bool has_phases = false;
  // Whether tokens attend to later ones, so that all tokens of a sequence are in one step. `rows` must suffice for the
  // longest one, and there is no prefix cache.
  bool has_whole_prompts = false;
  // Copies the content of a page at once. Null: there are no checkpoints.
  std::function<void(std::int32_t from, std::int32_t to)> copy_page;
};

// Tokens between the checkpoint of a prompt and its end: more than a template writes after the last message to begin an
// answer.
inline constexpr std::int64_t kTokensAfterCheckpoint = 16;
// The fewest tokens that a checkpoint must save: it costs a page, and that of a prompt also a step.
inline constexpr std::int64_t kTokensSavedByCheckpoint = 64;

class Scheduler {
 public:
  Scheduler() = default;
  Scheduler(SchedulerSettings settings, std::int64_t pages);

  // The sequence waits from now on, and must stay at its address until it is removed. All pages together must suffice
  // for the longest that it becomes.
  void add(ScheduledSequence& sequence);
  // Ends a sequence, whether it runs or waits, and releases its pages.
  void remove(ScheduledSequence& sequence);

  // The sequences of the next step, with pages for their rows; none if no sequence has a token to compute, or if those
  // that have one wait for pages. Valid until the next call, except for sequences that were removed. Allocates nothing.
  std::span<const Chunk> schedule();
  // The sequences whose first rows are in this step, and those that lost their pages for it. Valid as long as it.
  std::span<const ScheduledSequence* const> first_scheduled() const { return first_scheduled_; }
  std::span<const ScheduledSequence* const> preempted() const { return preempted_; }
  // Limits the prompts of steps in which sequences decode by the times of steps: see prompt_pace.h. observe() is to be
  // called after each step then.
  void pace_prompts() { pace_.turn_on(); }
  void observe(double seconds) { pace_.observe(seconds); }
  // Makes the full blocks of a sequence findable, as far as they are computed.
  void publish(ScheduledSequence& sequence);
  // The same for a sequence that has ended, before it is removed; its last block may become a checkpoint.
  void publish_end(ScheduledSequence& sequence);

  // The content of all pages is lost: all sequences wait, and nothing is found in the prefix cache.
  void restart();
  // Empties the prefix cache. Returns false, and does nothing, while a sequence runs.
  bool reset_prefix_cache() { return pool_.forget_all(); }

  KvPagePool& pool() { return pool_; }
  EngineStatistics statistics() const;

 private:
  using Sequences = std::list<ScheduledSequence*>;
  enum class Admission { admitted, deferred, full };

  void begin_pace();
  std::int64_t short_prompts(std::int64_t decoding) const;
  bool schedule_running();
  void schedule_waiting();
  Admission admit(ScheduledSequence& sequence);
  // The position from which on logits are wanted.
  static std::int64_t first_logit_row(const ScheduledSequence& sequence) {
    return std::min(sequence.first_logit_row, sequence.token_count() - 1);
  }
  // Tokens from the first one on whose blocks the prefix cache may hold.
  std::int64_t cacheable_tokens(const ScheduledSequence& sequence) const {
    return settings_.has_phases ? std::ssize(sequence.prompt) : sequence.token_count();
  }
  // Whether a checkpoint after so many tokens of the sequence is worth its page.
  bool is_checkpoint(const ScheduledSequence& sequence, std::int64_t tokens) const;
  // The tokens before the checkpoint of a prompt that is not computed so far; nullopt if it has none.
  std::optional<std::int64_t> next_checkpoint(const ScheduledSequence& sequence) const;
  void publish_checkpoint(ScheduledSequence& sequence, bool has_ended);
  std::optional<KvPagePool::Part> find_part(const ScheduledSequence& sequence, const KvPrefix& prefix);
  void find_prefix(const ScheduledSequence& sequence, KvPrefix& prefix);
  bool is_computed_now(const ScheduledSequence& sequence, const KvPrefix& prefix);
  void add_chunk(ScheduledSequence& sequence);
  std::int64_t draft_rows(const ScheduledSequence& sequence, std::int64_t most) const;
  bool reserve_pages(ScheduledSequence& sequence, std::int64_t tokens);
  ScheduledSequence& victim() const;
  void preempt(ScheduledSequence& sequence);
  void wait_again(ScheduledSequence& sequence);
  void release_pages(ScheduledSequence& sequence);
  Sequences::iterator place_of(const ScheduledSequence& sequence);
  std::span<const std::int32_t> block_of(const ScheduledSequence& sequence, std::int64_t index);
  // The tokens [begin, end), at most a block. Valid until the next call.
  std::span<const std::int32_t> tokens_of(const ScheduledSequence& sequence, std::int64_t begin, std::int64_t end);
  std::int64_t pages_of(std::int64_t tokens) const { return (tokens + settings_.block - 1) / settings_.block; }

  SchedulerSettings settings_;
  KvPagePool pool_;
  Sequences running_, waiting_;  // a sequence keeps its list node, so that moving it allocates nothing
  std::uint64_t next_arrival_ = 0;
  PromptPace pace_;
  EngineStatistics counts_;  // only what is counted, and `deferred`

  // Of the current step. The memory is reused by the next step.
  std::vector<Chunk> chunks_;
  std::vector<const ScheduledSequence*> first_scheduled_, preempted_;
  std::int64_t rows_left_ = 0, logit_rows_left_ = 0;
  std::int64_t prompts_left_ = 0;           // that run and of which this step has no chunk yet
  bool is_full_ = false;                    // whether the pages of the first sequence that waits were not free
  std::vector<ScheduledSequence*> order_;   // of running_ when the step began
  std::vector<std::int32_t> found_;         // pages from the prefix cache
  std::vector<std::int32_t> block_tokens_;  // one block
  std::vector<std::vector<std::int32_t>> spare_pages_;  // memory for the page lists of running sequences
};

}  // namespace weft
