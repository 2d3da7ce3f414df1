#pragma once

// One loaded model and its forward pass: compiled once for each token range, or op by op with --enforce-eager, or op by
// op over the graph that --compile-to stopped at. All give the same bits. The runner knows tokens, slots and batches;
// requests and their KV pages are the engine's.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/stopwatch.h"
#include "compiler/expected_fusions.h"
#include "compiler/pipeline.h"
#include "compiler/plan_store.h"
#include "compiler/verify_pieces.h"
#include "engine/model_program.h"
#include "engine/step_buffer.h"
#include "engine/traced_graph.h"
#include "runtime/capture_dispatcher.h"
#include "runtime/replay_report.h"

namespace weft {

// What a runner takes, in bytes.
struct MemoryUse {
  std::int64_t weights = 0;
  std::int64_t weights_of_device = 0;  // among them: in its memory and not in the host's
  std::int64_t activations_planned = 0;
  // What steps took of that so far (Replay::arena_bytes_taken), summed; nothing before the first step, and on a device.
  std::optional<std::int64_t> activations_measured;
  std::int64_t kv_of_longest_sequence = 0;
};

class ModelRunner {
 public:
  // Opens, checks, compiles and loads. `model_len` tokens is the longest sequence, `pages` the number of KV pages to
  // have. UserError for whatever is wrong with the checkpoint or the options. `watch` gets the laps trace, compile,
  // weights and capture.
  ModelRunner(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models,
              Stopwatch* watch = nullptr);
  ~ModelRunner();

  const ModelFacts& facts() const { return facts_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  // Sentences about what options cost this model's weights (Weights::costs_of_options).
  const std::vector<std::string>& notes() const { return notes_; }
  std::int64_t vocabulary_size() const { return facts_.config.vocab_size; }
  std::int64_t max_tokens() const { return max_tokens_; }
  // The most rows a step gives logits of: a row of logits is as large as many rows of the hidden state.
  std::int64_t max_logit_rows() const;

  // The most that a step has: sequences beyond max_num_seqs, or longer ones than the context, do not go into one.
  StepLimits step_limits() const;

  // Makes `pages` zeroed KV pages for each layer; what was there is gone. Memory is taken when a page is first written,
  // on a device at once.
  void allocate_pages(std::int64_t pages);

  // Runs one step of at most max_tokens() rows and gives the logits of the rows asked for, [n, vocabulary], valid
  // until the next step. Whatever was thrown, the next step may run; what this one wrote of its sequences' pages is
  // undefined.
  const Tensor& step(const StepInput& input);

  // Row `row` of what step gave, as f32.
  void copy_logits(const Tensor& logits, std::int64_t row, std::span<float> into) const;

  // What the compiler did, one record for each graph and range; empty in eager mode. Where Plans were found in the
  // compile cache the passes run now, at the first call.
  const std::vector<CompileRecord>& records();
  // Whether the Plans of the forward graph were found in the compile cache.
  CacheUse cache_use() const;
  // The graphs as traced, for `weft dump graph`.
  std::shared_ptr<const Graph> traced_forward() const { return traced_forward_; }
  std::shared_ptr<const Graph> traced_head() const { return traced_head_; }
  // The Plans of both graphs, for keeping them elsewhere. UserError where there are none, or they cannot be kept.
  std::vector<StoredPlans> store_plans() const;
  // Null in eager mode and with --compile-to.
  const Plan* forward_plan() const;
  const Plan* head_plan() const;
  std::int64_t kv_bytes_per_page() const;
  MemoryUse memory_use() const;
  // What was captured, and what was done for the first time.
  ReplayReport replay_report() const;
  // Of the forward and the head, up to now; empty without --evaluate-guards.
  std::vector<GuardReport> guard_reports() const;
  // Everything that steps need is there: with --forbid-lazy, whatever is still done for the first time is an error.
  // What compiling took is given back.
  void set_ready();
  // Called after every step of the Plans; for profiles. Null for none.
  void set_observer(std::function<void(const PlanStep&)> observer);
  // Every kernel's call of every step adds to it, null for none; it must live as long. InternalError where there are no
  // Plans.
  void set_launch_times(LaunchTimes* times);
  // Has every step held against the pieces' graphs from now on, in the place of observers; the steps need it until the
  // runner's end. UserError where there are no Plans.
  void verify_pieces(PieceVerification& verification);
  // Called for every linear layer of every step in eager mode, before it computes; InternalError in other modes.
  void set_linear_observer(LinearObserver observer);

 private:
  std::unique_ptr<CompiledModel> compile_all(const Graph& traced, const std::vector<TracedParam>& params,
                                             std::vector<TokenRange> ranges, Stopwatch& watch);
  // What --expect-fusions=all stands for.
  ExpectedFusions declared_fusions() const;
  StepLimits padded_limits() const;
  std::unique_ptr<StableInputs> make_stable_inputs(const Plan& plan) const;
  void capture_programs();
  void capture_sizes();
  // With --evaluate-guards, those of the sizes that run.
  void check_guards(const StepInput& input);
  void bind_step(ModelProgram& forward, const StepInput& input) const;
  const Tensor& run_step(const StepInput& input);
  const Tensor& step_compiled(const StepInput& input);
  Tensor step_eager(const StepInput& input);

  std::shared_ptr<Context> context_;
  Checkpoint checkpoint_;
  ModelFacts facts_;
  ModelDefinition model_;
  std::unique_ptr<Weights> weights_;
  std::vector<std::string> notes_;
  cuda::StreamDevice* device_;  // null: the host's processor
  DeviceWeights device_weights_;
  std::int64_t max_tokens_ = 0;
  std::vector<Tensor> pages_;  // one of meta kv for each layer
  StepBuffer padding_;         // for steps that a device takes with rows behind their own
  Tensor logits_, no_logits_;  // of steps whose logits are not a program's result, and of those that want none
  // The same in eager mode, where choices are made for them, too.
  std::vector<TokenRange> forward_ranges_, head_ranges_;
  std::unique_ptr<CompiledModel> forward_, head_;  // none in eager mode
  CaptureDispatcher dispatcher_;                   // of the forward's steps; the head's runs go with them
  std::vector<CompileRecord> records_;
  std::size_t range_count_ = 0;          // of both graphs, which have a record each
  std::optional<CacheKey> forward_key_;  // none where Plans are not kept
  bool forward_was_found_ = false;
  std::shared_ptr<const Graph> traced_forward_, traced_head_;
  std::optional<GuardEvaluation> forward_guards_, head_guards_;  // with --evaluate-guards
  LinearObserver linear_observer_;
};

}  // namespace weft
