#pragma once

// Opens, checks, traces and compiles the model of a checkpoint, up to its Plans. It loads no weights. Unless sizes are
// tuned it runs nothing of the compiled code, which may be for another processor than this one.

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/stopwatch.h"
#include "compiler/check/expected_fusions.h"
#include "compiler/pipeline.h"
#include "compiler/store/plan_store.h"
#include "engine/compile/phase.h"
#include "engine/compile/traced_graph.h"
#include "engine/weights/weights.h"

namespace weft {

// The forward or the head of a model.
struct ModelGraph {
  std::shared_ptr<const Graph> traced;
  std::vector<TracedParam> params;
  std::vector<TokenRange> ranges;                  // in eager mode too: choices are made for each range
  std::vector<std::shared_ptr<const Plan>> plans;  // by range; none in eager mode and with --compile-to
  std::size_t first_record = 0;                    // index of its first range's record in records()
  std::optional<GuardEvaluation> guards;           // with --evaluate-guards
};

// The graphs for the rows of a phase, or of both.
struct PhaseGraphs {
  ModelFacts facts;
  ModelGraph forward, head;
};

class ModelCompilation {
 public:
  // Opens, checks and traces. UserError for any problem with the checkpoint or the options.
  ModelCompilation(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models);
  ~ModelCompilation();

  // Makes the Plans; not in eager mode. `watch`, if not null, receives the laps tune and compile. UserError where no
  // piece has a name of --eager-piece, or where the fusions are not those of --expect-fusions.
  void compile(Stopwatch* watch = nullptr);

  Context& context() const { return *context_; }
  // Those of prompts; phases differ in `activations` alone.
  const ModelFacts& facts() const { return phases_.front().facts; }
  const ModelDefinition& definition() const { return definition_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  Weights& weights() const { return *weights_; }
  // Two where --activation-precision says so and a weight is of a block type, by Phase; otherwise one for all rows.
  std::span<const PhaseGraphs> phases() const { return phases_; }
  // The index of the graphs for the rows of a phase.
  std::size_t index_of(Phase phase) const { return std::min(static_cast<std::size_t>(phase), phases_.size() - 1); }
  const PhaseGraphs& graphs_of(Phase phase) const { return phases_[index_of(phase)]; }
  // The LoRA adapters; choices() is 0 without any.
  const LoraStacks& adapters() const { return *adapters_; }
  // The names of the weights of each product that an adapter changes, or may change when it is loaded.
  std::vector<std::vector<std::string>> adapted_products() const;
  // The forward and the head of each phase.
  std::vector<const ModelGraph*> graphs() const;
  // The maximum number of rows of a step, and how many of them may have logits: a row of logits is as large as many
  // rows of the hidden state.
  std::int64_t max_tokens() const { return max_tokens_; }
  std::int64_t max_logit_rows() const;

  // The KV pages of all layers, in bytes: one page of each; those of one sequence as long as the context.
  std::int64_t kv_bytes_per_page() const;
  std::int64_t kv_bytes_of_longest_sequence() const;
  // A sentence if the memory of the device, or of this machine, does not hold such a sequence; else "".
  std::string describe_excess_of_context() const;
  // The arenas of the Plans in bytes: on the host each Plan has its own, on a device the Plans of a graph share one.
  std::int64_t arena_bytes() const;

  // Sentences about parts of the checkpoint that are ignored, and about weights that are stored as numbers.
  const std::vector<std::string>& notes() const { return notes_; }
  // The compiler's records, one for each graph and range; empty in eager mode. Where the Plans came from the compile
  // cache, the first call runs the passes.
  const std::vector<CompileRecord>& records();
  // Whether the Plans of the first forward graph were found in the compile cache.
  CacheUse cache_use() const;
  // The Plans of all graphs in a form that can be stored. UserError where there are none, or where they cannot be
  // stored.
  std::vector<StoredPlans> store_plans() const;
  // With --evaluate-guards, checks the guards of a step of `rows` rows, of which `logit_rows` need logits.
  void check_guards(Phase phase, std::int64_t rows, std::int64_t logit_rows);
  // The reports of all graphs so far; empty without --evaluate-guards.
  std::vector<GuardReport> guard_reports() const;

 private:
  void check_checkpoint();
  void open_adapters();
  void check_adapters() const;
  std::int64_t most_tokens();  // of a step
  void trace_phases();
  struct PhaseNames {
    const char *forward, *head;
  };
  void trace_phase(PhaseGraphs& phase, PhaseNames names);
  ModelGraph trace(const ModelFacts& facts, const char* name, const std::function<Values(Builder&)>& function) const;
  bool compile(ModelGraph& graph, std::optional<CacheKey>* key = nullptr);
  bool has_node(const std::string& op) const;
  int declared_matches(const std::string& fusion, std::span<const Pattern* const> patterns) const;
  // The meaning of --expect-fusions=all.
  ExpectedFusions declared_fusions() const;

  std::shared_ptr<Context> context_;
  Checkpoint checkpoint_;
  ModelDefinition definition_;
  std::vector<std::string> notes_;
  std::shared_ptr<const LoraStacks> adapters_;
  std::unique_ptr<Weights> weights_;
  std::int64_t max_tokens_ = 0;
  std::vector<PhaseGraphs> phases_;
  std::vector<CompileRecord> records_;
  std::size_t range_count_ = 0;          // ranges of both graphs; each range has a record
  std::optional<CacheKey> forward_key_;  // nullopt where Plans are not stored
  bool forward_was_found_ = false;
};

}  // namespace weft
