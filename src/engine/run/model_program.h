#pragma once

// A program runs one graph of a model for a token range: its Plan, bound to the model's weights. On a device the
// weights are in device memory, and the inputs that change with each step are copied to memory that both the device and
// the host can use.

#include <array>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "compiler/token_ranges.h"
#include "engine/compile/builders.h"
#include "runtime/replay.h"
#include "runtime/stable_inputs.h"

namespace weft {

// The inputs that are bound in each step. The graphs of models name them "ids", "positions", ...
// Not all graphs have the last two.
enum class StepTensor : std::uint8_t { ids, positions, slots, batch, hidden, rows, token_types, adapters };
inline constexpr std::size_t kStepTensors = 8;

struct ModelProgram {
  std::map<std::string, std::size_t> inputs = {};  // name to position among the graph's inputs
  std::unique_ptr<Replay> replay = {};
  std::unique_ptr<StableInputs> stable = {};  // with cc.cudagraph_copy_inputs, and on a device
  std::size_t record = 0;                     // index of its CompileRecord among the runner's records

  // Used instead of a Plan where --compile-to stopped before there was one: the graph, which runs op by op.
  std::shared_ptr<const Graph> graph = {};
  std::unique_ptr<EagerEvaluator> evaluator = {};
  Values bound = {};
  std::vector<Tensor> results = {};

  // `arena` is that of ReplaySettings.
  ModelProgram(std::shared_ptr<const Plan> plan, const Context& context, std::shared_ptr<Storage> arena = nullptr);
  ModelProgram(const CompileRecord& record, const Context& context);

  bool has(StepTensor which) const { return step_tensors_[static_cast<std::size_t>(which)] != kNoInput; }
  // Binds the tensor, or a copy of it where `stable` is set.
  void bind(const std::string& name, const Tensor& tensor) { bind(inputs.at(name), tensor); }
  void bind(StepTensor which, const Tensor& tensor) { bind(place_of(which), tensor); }
  // Binds a tensor without a copy. It must be in the same memory as the Plan's arena and must not change until the run
  // ends.
  void bind_in_place(StepTensor which, const Tensor& tensor) { bind_in_place(place_of(which), tensor); }
  void run(ReplayMode mode);
  const Plan* plan() const { return replay == nullptr ? nullptr : &replay->plan(); }
  // Valid until the next run.
  const Tensor& result(std::size_t index) const;

 private:
  static constexpr std::size_t kNoInput = std::numeric_limits<std::size_t>::max();

  void find_step_tensors();
  std::size_t place_of(StepTensor which) const;
  void bind(std::size_t index, const Tensor& tensor);
  void bind_in_place(std::size_t index, const Tensor& tensor);
  void check_pages_stay(const Value& result) const;

  // their positions among the inputs; kNoInput where the graph has none
  std::array<std::size_t, kStepTensors> step_tensors_ = {};
};

// The programs of one graph for all its ranges.
struct RangePrograms {
  RangeTable ranges = {};
  std::vector<ModelProgram*> by_range = {};  // ranges that share a Plan share a program
  std::vector<std::unique_ptr<ModelProgram>> programs = {};
  // On a device all programs share one arena, as large as the largest needs. A step runs one program of a graph, and
  // what it leaves for another graph, such as the hidden state for the head, is read before the next step.
  std::shared_ptr<Storage> arena = nullptr;

  ModelProgram& program_for(std::int64_t rows) { return *by_range[ranges.of(rows)]; }
  // Makes the captures for runs of 1 to `rows` rows.
  void capture(ReplayMode mode, std::int64_t rows);
};

// Copies of a model's weights in device memory. Each is made once, and the host's copy is then released.
class DeviceWeights {
 public:
  // Returns the weight itself where `device` is null.
  Tensor tensor(cuda::StreamDevice* device, Weights& weights, const TracedParam& param);
  std::int64_t bytes() const;

 private:
  std::map<std::pair<std::vector<std::string>, WeightRole>, Tensor> uploaded_;
};

}  // namespace weft
