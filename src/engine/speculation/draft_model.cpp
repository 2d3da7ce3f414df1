#include "engine/speculation/draft_model.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/open_checkpoint.h"
#include "engine/run/step_of_chunks.h"

namespace weft {
namespace {

constexpr const char* kWhere = "--speculative-config";

// Of the options of the target those that are not about its checkpoint, its memory or its files.
Options draft_options(Options options, std::int64_t context) {
  const Options defaults;
  options.speculative_config = options.draft_model = "";
  options.lora = options.lora_scaled = options.lora_modules = {};
  options.allow_runtime_lora_updating = false;
  options.kv_cache_memory_bytes = options.num_gpu_blocks_override = 0;
  options.trace = options.debug_dump_path = "";
  // Rows of prompts and generated ones need no graphs of their own here.
  options.activation_precision = defaults.activation_precision;
  options.max_model_len = context;
  return options;
}

Checkpoint open_draft(const std::string& model, const DraftTarget& target) {
  return open_checkpoint(resolve_model(model, target.options, process_environment()), target.options, target.models);
}

// Whether a text becomes this token by the rules of the vocabulary, and not because it is a special one. Models that
// were trained for other conversations differ in special tokens alone.
bool is_plain(const Vocabulary& vocabulary, std::size_t id) {
  return vocabulary.kinds[id] == TokenKind::normal || vocabulary.kinds[id] == TokenKind::byte;
}

void check_vocabulary(const Checkpoint& draft, const DraftTarget& target) {
  if (target.vocabulary == nullptr || !draft.has_vocabulary()) return;
  const Vocabulary own = draft.vocabulary();
  const Vocabulary& wanted = *target.vocabulary;
  for (std::size_t id = 0; id < std::min(own.tokens.size(), wanted.tokens.size()); ++id)
    USER_CHECK(!is_plain(own, id) || !is_plain(wanted, id) || own.tokens[id] == wanted.tokens[id],
               "[{}] wanted a model with the vocabulary of {}, where token {} is {}, but in {} it is {}", kWhere,
               target.runner.checkpoint().path(), id, quote(wanted.tokens[id]), draft.path(), quote(own.tokens[id]));
}

}  // namespace

// A sequence as the draft model computes it: with guesses as its last tokens.
struct DraftModel::Drafted : Proposer::Kept, ScheduledSequence {
  Drafted(DraftModel& by, const ScheduledSequence& target) : model(by) {
    prompt_ids = target.prompt_ids;
    prompt = target.prompt;
    priority = target.priority;
    cache_salt = target.cache_salt;
    is_known = has(prompt);
  }
  ~Drafted() override {
    if (is_scheduled) model.scheduler_.remove(*this);
  }
  // Whether the draft model has these tokens.
  bool has(std::span<const int> ids) const {
    return std::all_of(ids.begin(), ids.end(), [&](int id) { return id < model.runner_->vocabulary_size(); });
  }

  DraftModel& model;
  bool is_known = false;  // whether it has all tokens of the sequence
  bool is_scheduled = false;
  std::size_t sampled = 0;              // tokens of `output` that are no guesses
  std::int64_t wanted = 0;              // guesses that are missing in this step
  std::vector<int>* guesses = nullptr;  // the draft of the target's sequence
};

DraftModel::DraftModel(const SpeculativeConfig& config, const DraftTarget& target)
    : config_(config), target_vocabulary_size_(target.runner.vocabulary_size()) {
  Checkpoint checkpoint = open_draft(config.model, target);
  const std::string path = checkpoint.path();
  const ModelConfig& model = checkpoint.config(target.models.find(checkpoint).facts);
  USER_CHECK(model.is_causal, "[{}] {} generates no text: its tokens attend to later ones", kWhere, path);
  USER_CHECK(!model.recurrent,
             "[{}] {} has recurrent layers, whose states cannot go back to an earlier token when a proposal is refused",
             kWhere, path);
  check_vocabulary(checkpoint, target);
  std::int64_t context = std::min(model.context_length, target.runner.facts().config.context_length);
  if (config.max_model_len > 0) context = std::min(context, config.max_model_len);
  context_ = open_context(draft_options(target.options, context)).context;
  runner_ = std::make_unique<ModelRunner>(context_, std::move(checkpoint), target.models);
  make_pages(target.kv_tokens);
  runner_->set_ready();
  notes_.push_back(fmt::format("[speculative decoding] {} proposes up to {} tokens for a step", path,
                               config.num_speculative_tokens));
  for (const std::string& note : runner_->notes()) notes_.push_back(note);
}

// As many tokens as the target has in its pages, and for each sequence a page that is not full.
void DraftModel::make_pages(std::int64_t kv_tokens) {
  const StepLimits most = runner_->step_limits();
  const std::int64_t block = runner_->facts().kv.block, pages = kv_tokens / block + most.sequences;
  runner_->allocate_pages(pages);
  scheduler_ = Scheduler({.rows = most.rows,
                          .logit_rows = runner_->max_logit_rows(),
                          .sequences = most.sequences,
                          .block = block,
                          .longest = runner_->facts().config.context_length,
                          .caches_prefixes = context_->options.enable_prefix_caching},
                         pages);
  step_ = StepBuffer(most);
  logit_rows_.reserve(static_cast<std::size_t>(runner_->max_logit_rows()));
  logits_.resize(static_cast<std::size_t>(runner_->vocabulary_size()));
}

std::unique_ptr<Proposer::Kept> DraftModel::begin(const ScheduledSequence& sequence) {
  return std::make_unique<Drafted>(*this, sequence);
}

// Replaces guesses by what was sampled. Returns whether guesses are wanted.
bool DraftModel::follow(const Sequence& one) {
  auto& drafted = static_cast<Drafted&>(*one.kept);
  const std::vector<int>& sampled = one.sequence->output;
  std::vector<int>& own = drafted.output;
  const auto most = static_cast<std::ptrdiff_t>(std::min(own.size(), sampled.size()));
  const auto from = static_cast<std::ptrdiff_t>(drafted.sampled);
  const auto same = std::mismatch(own.begin() + from, own.begin() + most, sampled.begin() + from).first - own.begin();
  own.resize(static_cast<std::size_t>(same));
  drafted.computed = std::min(drafted.computed, drafted.token_count());
  own.insert(own.end(), sampled.begin() + same, sampled.end());
  drafted.is_known = drafted.is_known && drafted.has(std::span(own).subspan(static_cast<std::size_t>(same)));
  drafted.sampled = own.size();
  drafted.guesses = &one.sequence->draft;
  const std::int64_t room = runner_->facts().config.context_length - drafted.token_count();
  drafted.wanted = drafted.is_known ? std::clamp<std::int64_t>(room, 0, one.most) : 0;
  if (drafted.wanted == 0) return false;
  if (!std::exchange(drafted.is_scheduled, true)) scheduler_.add(drafted);
  scheduler_.publish(drafted);
  return true;
}

void DraftModel::propose(std::span<const Sequence> sequences) {
  if (runner_->is_broken()) {
    scheduler_.restart();
    runner_->reopen();
  }
  std::int64_t open = 0;
  for (const Sequence& one : sequences) open += follow(one) ? 1 : 0;
  try {
    for (std::int64_t step = 0; open > 0 && step < config_.num_speculative_tokens; ++step) {
      const std::span<const Chunk> chunks = scheduler_.schedule();
      if (chunks.empty()) return;
      open -= run(chunks);
    }
  } catch (const DeviceError&) {
    if (!runner_->is_broken()) throw;  // else the target's step finds the device broken
  }
}

// Returns how many sequences have all guesses that are wanted.
std::int64_t DraftModel::run(std::span<const Chunk> chunks) {
  logit_rows_.clear();
  add_logit_rows(chunks, logit_rows_);
  fill_step(step_, chunks, logit_rows_, runner_->facts().kv.block, Phase::prompt);
  const Tensor& logits = runner_->step(step_.input());
  std::int64_t row = 0, done = 0;
  for (const Chunk& chunk : chunks) {
    chunk.sequence->computed += chunk.rows;
    if (chunk.logit_rows > 0) done += guess(static_cast<Drafted&>(*chunk.sequence), logits, row) ? 1 : 0;
    row += chunk.logit_rows;
  }
  return done;
}

// Returns whether this was the last guess that is wanted. The last one is not computed.
bool DraftModel::guess(Drafted& drafted, const Tensor& logits, std::int64_t row) {
  if (drafted.wanted == 0) return false;
  runner_->copy_row(logits, row, logits_);
  const auto best = std::max_element(logits_.begin(), logits_.end()) - logits_.begin();
  if (best >= target_vocabulary_size_) drafted.wanted = 0;
  if (drafted.wanted == 0) return true;
  drafted.guesses->push_back(static_cast<int>(best));
  if (--drafted.wanted == 0) return true;
  drafted.output.push_back(static_cast<int>(best));
  return false;
}

}  // namespace weft
