#pragma once

// Proposals by a second, smaller model with the same vocabulary, as vLLM's method "draft_model": the most likely next
// tokens by that model, one after another. It computes all tokens of a sequence itself, in KV pages of its own, so it
// has a scheduler and a prefix cache of its own.

#include <string>
#include <vector>

#include "engine/run/model_runner.h"
#include "engine/run/step_buffer.h"
#include "engine/speculation/proposer.h"
#include "engine/speculation/speculative_config.h"
#include "io/vocabulary.h"

namespace weft {

// The model whose answers are proposed.
struct DraftTarget {
  const Options& options;
  const ModelRegistry& models;
  const ModelRunner& runner;
  const Vocabulary* vocabulary;  // null where it has no tokenizer
  std::int64_t kv_tokens;        // that its KV pages hold
};

class DraftModel : public Proposer {
 public:
  // UserError for any problem with the checkpoint, for a model whose tokens attend to later ones or that cannot go back
  // to an earlier token, and for another vocabulary.
  DraftModel(const SpeculativeConfig& config, const DraftTarget& target);

  std::unique_ptr<Kept> begin(const ScheduledSequence& sequence) override;
  // Computes what is missing of the sequences and then token after token. A sequence of which more is missing than some
  // steps compute gets no proposal.
  void propose(std::span<const Sequence> sequences) override;

  // Sentences for the user: what was opened, and the notes on it.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Drafted;

  void make_pages(std::int64_t kv_tokens);
  bool follow(const Sequence& one);
  std::int64_t run(std::span<const Chunk> chunks);
  bool guess(Drafted& drafted, const Tensor& logits, std::int64_t row);

  SpeculativeConfig config_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<ModelRunner> runner_;
  std::int64_t target_vocabulary_size_ = 0;
  Scheduler scheduler_;
  StepBuffer step_;
  std::vector<std::int64_t> logit_rows_;  // of the step
  std::vector<float> logits_;             // one row
  std::vector<std::string> notes_;
};

}  // namespace weft
