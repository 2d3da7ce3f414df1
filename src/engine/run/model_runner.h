#pragma once

// One loaded model and its forward pass: compiled once for each token range; or op by op with --enforce-eager; or op by
// op over the graph that --compile-to stopped at. All of these give the same bits. The runner handles tokens, slots and
// batches; the engine handles requests and their KV pages.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/stopwatch.h"
#include "compiler/check/verify_pieces.h"
#include "engine/compile/model_compilation.h"
#include "engine/run/model_program.h"
#include "engine/run/step_buffer.h"
#include "engine/weights/adapter_slots.h"
#include "runtime/launch_graph_dispatcher.h"
#include "runtime/replay_report.h"

namespace weft {

struct BadPages;

// The memory that a runner uses, in bytes.
struct MemoryUse {
  std::int64_t weights = 0;
  std::int64_t weights_of_device = 0;  // the part of them in device memory
  std::int64_t activations_planned = 0;
  // The part of activations_planned that steps touched so far (Replay::arena_bytes_taken), summed; nullopt before the
  // first step, and on a device.
  std::optional<std::int64_t> activations_measured;
  std::int64_t kv_of_longest_sequence = 0;
  // The part of the KV pages that steps touched since the pages were allocated, in pages of the system as
  // resident_bytes counts them: huge pages count by 2 MiB, and a layer below 1 MiB counts as a whole. nullopt where
  // there are no KV pages, and on a device.
  std::optional<std::int64_t> kv_measured;
};

class ModelRunner {
 public:
  // Opens, checks, compiles and loads. UserError for any problem with the checkpoint or the options. `watch` receives
  // the laps trace, tune, compile, weights and capture.
  ModelRunner(std::shared_ptr<Context> context, Checkpoint checkpoint, const ModelRegistry& models,
              Stopwatch* watch = nullptr);
  ~ModelRunner();

  const ModelFacts& facts() const { return model_->facts(); }
  const Checkpoint& checkpoint() const { return model_->checkpoint(); }
  const ModelDefinition& definition() const { return model_->definition(); }
  // Sentences about the memory that options cost this model (Weights::costs_of_options).
  const std::vector<std::string>& notes() const { return notes_; }
  std::int64_t vocabulary_size() const { return facts().config.vocab_size; }
  std::int64_t max_tokens() const { return model_->max_tokens(); }
  std::int64_t max_logit_rows() const { return model_->max_logit_rows(); }
  // Whether rows of prompts and generated rows have graphs of their own. A step has rows of one phase then.
  bool has_phases() const { return model_->phases().size() > 1; }

  // The maximum size of a step. It has at most max_num_seqs sequences, and none is longer than the context.
  StepLimits step_limits() const;

  // Allocates `pages` zeroed KV pages for each layer; the content of earlier pages is lost. On the host, memory is
  // taken when a page is first written; on a device it is taken at once.
  void allocate_pages(std::int64_t pages);

  // Copies what all layers have in a page. InternalError where pages are in the memory of a device.
  void copy_page(std::int32_t from, std::int32_t to);

  // Whether work on the device has broken it, or another user of the device has opened it again. No step can run until
  // reopen() was called.
  bool is_broken() const;
  // Opens the device again: uploads the weights, binds and captures the Plans as set_ready() does, and allocates as
  // many zeroed KV pages as before. Observers, launch times and verifications are removed. DeviceError where the device
  // cannot be opened; the call may then be repeated.
  void reopen();

  // Runs one step of at most max_tokens() rows and returns the logits of the requested rows, [n, vocabulary], valid
  // until the next step. After an exception the next step may run; what this step wrote into its sequences' pages is
  // undefined.
  const Tensor& step(const StepInput& input);

  // Copies row `row` of the logits that step() returned, or of hidden(), as f32.
  void copy_row(const Tensor& rows, std::int64_t row, std::span<float> into) const;

  // The hidden states after the last norm of all rows of the last step, [rows, hidden size] or more rows, in memory of
  // the host. Valid until the next step.
  Tensor hidden() const;

  // A sentence about the source of a NaN among the last step's logits. `input` is the input of that step, `row` is one
  // of its logit rows, and the sequence has `tokens` tokens in the KV pages `blocks`. The sentence begins with [kv
  // cache] where keys or values exceed the range of the pages' type, else with [logits].
  std::string describe_nan(const StepInput& input, std::int64_t row, std::span<const std::int32_t> blocks,
                           std::int64_t tokens);

  // "", or a sentence about a key that the last step wrote for the positions [begin, end) of a sequence and that
  // exceeds the range of f16 pages. "" for other pages, and for those in the memory of a device, which are too slow to
  // read after each step.
  std::string describe_overflow(std::span<const std::int32_t> blocks, std::int64_t begin, std::int64_t end) const;
  // The same for all positions of a sequence that has ended, for pages in the memory of a device; "" for others.
  std::string describe_overflow_on_device(std::span<const std::int32_t> blocks, std::int64_t tokens);

  // The model's graphs and the compiler's records of them.
  ModelCompilation& model() { return *model_; }
  const ModelCompilation& model() const { return *model_; }
  const std::vector<CompileRecord>& records() { return model_->records(); }
  // Null in eager mode and with --compile-to. Of prompts, where phases have graphs of their own.
  const Plan* forward_plan() const;
  const Plan* head_plan() const;
  // The LoRA adapters of requests.
  AdapterSlots& adapters() { return *adapters_; }
  std::int64_t kv_bytes_per_page() const { return model_->kv_bytes_per_page(); }
  MemoryUse memory_use() const;
  // The captures, and the counts of first-time work.
  ReplayReport replay_report() const;
  // Declares that everything that steps need is ready: with --forbid-lazy, all first-time work after this is an error.
  // Releases the memory that only compiling needed.
  void set_ready();
  // Called after every step of the Plans, for profiles; may be empty.
  void set_observer(std::function<void(const PlanStep&)> observer);
  // Every kernel call of every step adds its time to `times`, which may be null and must outlive the steps.
  // InternalError where there are no Plans.
  void set_launch_times(LaunchTimes* times);
  // Compares every following step with the graphs of its pieces; this replaces observers. `verification` must outlive
  // the runner. UserError where there are no Plans.
  void verify_pieces(PieceVerification& verification);
  // Called for every linear layer of every step in eager mode, before it computes; InternalError in other modes.
  void set_linear_observer(LinearObserver observer);

 private:
  Weights& weights() const { return model_->weights(); }
  void prepare_eager();
  void open_adapters();
  void check_against_graphs();
  void load_programs();
  std::unique_ptr<RangePrograms> load(const ModelGraph& graph);
  std::vector<RangePrograms*> programs() const;
  std::shared_ptr<Storage> make_arena(const ModelGraph& graph) const;
  bool pads_steps() const;
  StepLimits padded_limits() const;
  std::unique_ptr<StableInputs> make_stable_inputs(const Plan& plan) const;
  void capture_programs();
  void capture_sizes(Phase phase);
  const StepInput& padded(const StepInput& input, const LaunchGraphDispatcher::Dispatch& to);
  void bind_step(ModelProgram& forward, const StepInput& input) const;
  void bind_head(ModelProgram& head, const ModelProgram& forward, const StepInput& input) const;
  const Tensor& run_step(const StepInput& input);
  const Tensor& step_compiled(const StepInput& input);
  Tensor step_eager(const StepInput& input);
  std::string find_nan_by_op(const StepInput& input);
  // The inputs of a step by name, with the pages.
  std::map<std::string, Tensor> inputs_of(const StepInput& input) const;
  // Whether KV pages are in the memory of a device. In eager mode they are not.
  bool has_pages_on_device() const { return device_ != nullptr && forward_plan() != nullptr; }
  // What `find` finds first in the pages of a layer, given with the numbers that they have there.
  using FindInPages =
      std::function<std::optional<BadPages>(const Tensor& pages, std::span<const std::int32_t> numbers)>;
  int layer_of(const BadPages& bad) const;
  std::optional<BadPages> find_in_pages_of_device(std::span<const std::int32_t> blocks, std::int64_t tokens,
                                                  const FindInPages& find);

  std::shared_ptr<Context> context_;
  std::unique_ptr<ModelCompilation> model_;
  std::vector<std::string> notes_;
  cuda::StreamDevice* device_;  // null: the host's processor
  DeviceWeights device_weights_;
  std::unique_ptr<AdapterSlots> adapters_;
  std::vector<Tensor> pages_;  // of meta kv, as ModelFacts::pages lists them
  std::int64_t page_count_ = 0;
  int opening_ = 0;                             // StreamDevice::openings at the last upload
  bool is_whole_ = true;                        // false while the device is reopened, and after that failed
  StepBuffer padding_;                          // for steps that are padded to a captured size
  const ModelProgram* last_forward_ = nullptr;  // of the last step; has its hidden state; null in eager mode
  Tensor hidden_;                               // in eager mode
  Tensor logits_, no_logits_;  // for steps whose logits are no program's result; for steps without logits
  struct PhasePrograms {
    std::unique_ptr<RangePrograms> forward, head;
  };
  PhasePrograms& programs_of(Phase phase) { return phases_[model_->index_of(phase)]; }
  std::vector<PhasePrograms> phases_;  // as those of the model; none in eager mode
  LaunchGraphDispatcher dispatcher_;   // for the forward's steps; the head's runs follow them
  std::int64_t padded_rows_ = 0;
  std::unique_ptr<PieceVerification> verification_;  // with --check-replay on the host
  LinearObserver linear_observer_;
};

}  // namespace weft
