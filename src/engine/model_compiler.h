#pragma once

// A checkpoint's model up to its Plans: opened, checked, traced and compiled. None of its weights is loaded, and unless
// sizes are to be tuned nothing of what was compiled is run: it may be for another processor than this one.

#include <memory>
#include <optional>
#include <vector>

#include "base/stopwatch.h"
#include "compiler/expected_fusions.h"
#include "compiler/pipeline.h"
#include "compiler/plan_store.h"
#include "engine/traced_graph.h"
#include "engine/weights.h"

namespace weft {

// One of a model's two graphs.
struct ModelGraph {
  std::shared_ptr<const Graph> traced;
  std::vector<TracedParam> params;
  std::vector<TokenRange> ranges;                  // in eager mode, where choices are made for them, too
  std::vector<std::shared_ptr<const Plan>> plans;  // by range; none in eager mode and with --compile-to
  std::size_t first_record = 0;                    // of its ranges among the compiler's
  std::optional<GuardEvaluation> guards;           // with --evaluate-guards
};

class ModelCompiler {
 public:
  // Opens, checks and traces. UserError for whatever is wrong with the checkpoint or the options.
  ModelCompiler(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models);
  ~ModelCompiler();

  // Makes the Plans; not in eager mode. `watch`, if there is one, gets the laps tune and compile. UserError where there
  // are no such pieces as --eager-piece names, or other fusions than --expect-fusions wants.
  void compile(Stopwatch* watch = nullptr);

  Context& context() const { return *context_; }
  const ModelFacts& facts() const { return facts_; }
  const ModelDefinition& definition() const { return definition_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  Weights& weights() const { return *weights_; }
  const ModelGraph& forward() const { return forward_; }
  const ModelGraph& head() const { return head_; }
  // The most rows of a step, and the most of those whose logits it gives: a row of logits is as large as many rows of
  // the hidden state.
  std::int64_t max_tokens() const { return max_tokens_; }
  std::int64_t max_logit_rows() const;

  // Sentences on what the checkpoint holds and is left out.
  const std::vector<std::string>& notes() const { return notes_; }
  // What the compiler did, one record for each graph and range; empty in eager mode. Where Plans were found in the
  // compile cache the passes run now, at the first call.
  const std::vector<CompileRecord>& records();
  // Whether the Plans of the forward graph were found in the compile cache.
  CacheUse cache_use() const;
  // The Plans of both graphs, for keeping them elsewhere. UserError where there are none, or they cannot be kept.
  std::vector<StoredPlans> store_plans() const;
  // With --evaluate-guards, those of a step of so many rows, `logit_rows` of which want logits.
  void check_guards(std::int64_t rows, std::int64_t logit_rows);
  // Of the forward and the head, up to now; empty without --evaluate-guards.
  std::vector<GuardReport> guard_reports() const;

 private:
  void check_checkpoint();
  ModelGraph trace(const char* name, const std::function<Values(Builder&)>& function) const;
  bool compile(ModelGraph& graph, std::optional<CacheKey>* key = nullptr);
  // What --expect-fusions=all stands for.
  ExpectedFusions declared_fusions() const;

  std::shared_ptr<Context> context_;
  Checkpoint checkpoint_;
  ModelDefinition definition_;
  ModelFacts facts_;
  std::vector<std::string> notes_;
  std::unique_ptr<Weights> weights_;
  std::int64_t max_tokens_ = 0;
  ModelGraph forward_, head_;
  std::vector<CompileRecord> records_;
  std::size_t range_count_ = 0;          // of both graphs, which have a record each
  std::optional<CacheKey> forward_key_;  // none where Plans are not kept
  bool forward_was_found_ = false;
};

}  // namespace weft
