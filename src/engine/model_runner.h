#pragma once

// One loaded model and its forward pass: compiled once for each token range, or op by op with --enforce-eager, or op by
// op over the graph that --compile-to stopped at. All give the same bits. The runner knows tokens, slots and batches;
// requests and their KV pages are the engine's.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/stopwatch.h"
#include "compiler/verify_pieces.h"
#include "engine/model_compiler.h"
#include "engine/model_program.h"
#include "engine/step_buffer.h"
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
  // What steps touched of the KV pages since they were made, in pages of the system as resident_bytes counts them: by
  // 2 MiB where those are huge, and all of a layer's below 1 MiB. Nothing where there are none, and on a device.
  std::optional<std::int64_t> kv_measured;
};

class ModelRunner {
 public:
  // Opens, checks, compiles and loads. UserError for whatever is wrong with the checkpoint or the options. `watch` gets
  // the laps trace, tune, compile, weights and capture.
  ModelRunner(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models,
              Stopwatch* watch = nullptr);
  ~ModelRunner();

  const ModelFacts& facts() const { return model_->facts(); }
  const Checkpoint& checkpoint() const { return model_->checkpoint(); }
  // Sentences about what options cost this model's weights (Weights::costs_of_options).
  const std::vector<std::string>& notes() const { return notes_; }
  std::int64_t vocabulary_size() const { return facts().config.vocab_size; }
  std::int64_t max_tokens() const { return model_->max_tokens(); }
  std::int64_t max_logit_rows() const { return model_->max_logit_rows(); }

  // The most that a step has: sequences beyond max_num_seqs, or longer ones than the context, do not go into one.
  StepLimits step_limits() const;

  // Makes `pages` zeroed KV pages for each layer; what was there is gone. Memory is taken when a page is first written,
  // on a device at once.
  void allocate_pages(std::int64_t pages);

  // Whether something that ran on the device has broken it, or somebody else had to open it anew: no step can run until
  // that was done here.
  bool is_broken() const;
  // Opens it anew: weights are uploaded again, Plans bound and captured as before ready, as many KV pages made, zeroed.
  // Observers, launch times and verifications are gone. DeviceError where the device does not come back; it may then be
  // tried again.
  void reopen();

  // Runs one step of at most max_tokens() rows and gives the logits of the rows asked for, [n, vocabulary], valid
  // until the next step. Whatever was thrown, the next step may run; what this one wrote of its sequences' pages is
  // undefined.
  const Tensor& step(const StepInput& input);

  // Row `row` of what step gave, as f32.
  void copy_logits(const Tensor& logits, std::int64_t row, std::span<float> into) const;

  // Where NaN came from that is among the logits of the last step: `input` is what it was given, `row` is one of its
  // logit rows, and the sequence has `tokens` tokens in the KV pages `blocks`. A sentence that begins with [kv cache]
  // where keys or values are beyond what the type of the pages holds, else with [logits].
  std::string describe_nan(const StepInput& input, std::int64_t row, std::span<const std::int32_t> blocks,
                           std::int64_t tokens);

  // Its graphs and what the compiler did with them.
  ModelCompiler& model() { return *model_; }
  const ModelCompiler& model() const { return *model_; }
  const std::vector<CompileRecord>& records() { return model_->records(); }
  // Null in eager mode and with --compile-to.
  const Plan* forward_plan() const;
  const Plan* head_plan() const;
  std::int64_t kv_bytes_per_page() const;
  MemoryUse memory_use() const;
  // What was captured, and what was done for the first time.
  ReplayReport replay_report() const;
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
  Weights& weights() const { return model_->weights(); }
  void prepare_eager();
  void check_against_graphs();
  void load_programs();
  std::unique_ptr<CompiledModel> load(const ModelGraph& graph);
  std::shared_ptr<Storage> make_arena(const ModelGraph& graph) const;
  bool pads_steps() const;
  StepLimits padded_limits() const;
  std::unique_ptr<StableInputs> make_stable_inputs(const Plan& plan) const;
  void capture_programs();
  void capture_sizes();
  const StepInput& padded(const StepInput& input, const CaptureDispatcher::Dispatch& to);
  void bind_step(ModelProgram& forward, const StepInput& input) const;
  void bind_head(ModelProgram& head, const ModelProgram& forward, const StepInput& input) const;
  const Tensor& run_step(const StepInput& input);
  const Tensor& step_compiled(const StepInput& input);
  Tensor step_eager(const StepInput& input);
  std::string find_nan_by_op(const StepInput& input);

  std::shared_ptr<Context> context_;
  std::unique_ptr<ModelCompiler> model_;
  std::vector<std::string> notes_;
  cuda::StreamDevice* device_;  // null: the host's processor
  DeviceWeights device_weights_;
  std::vector<Tensor> pages_;  // one of meta kv for each layer
  std::int64_t page_count_ = 0;
  int opening_ = 0;                             // StreamDevice::openings when what is here was uploaded
  bool is_whole_ = true;                        // not while the device is opened anew, and where that failed
  StepBuffer padding_;                          // for steps that are taken in the size that was captured
  const ModelProgram* last_forward_ = nullptr;  // of the last step, whose hidden state it still has; null in eager mode
  Tensor hidden_;                               // that of eager mode
  Tensor logits_, no_logits_;  // of steps whose logits are not a program's result, and of those that want none
  std::unique_ptr<CompiledModel> forward_, head_;    // none in eager mode
  CaptureDispatcher dispatcher_;                     // of the forward's steps; the head's runs go with them
  std::int64_t padded_rows_ = 0;                     // so far
  std::unique_ptr<PieceVerification> verification_;  // with --check-replay on the host
  LinearObserver linear_observer_;
};

}  // namespace weft
