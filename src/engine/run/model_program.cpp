#include "engine/run/model_program.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/replay_settings.h"
#include "compiler/run/interpret.h"
#include "runtime/cuda/stream_device.h"

namespace weft {
namespace {

// Indexed by StepTensor.
constexpr std::array<const char*, kStepTensors> kStepTensorNames{"ids",    "positions", "slots",       "batch",
                                                                 "hidden", "rows",      "token_types", kAdapters};

}  // namespace

ModelProgram::ModelProgram(std::shared_ptr<const Plan> plan, const Context& context, std::shared_ptr<Storage> arena) {
  ReplaySettings settings = replay_settings(context);
  settings.arena = std::move(arena);
  replay = std::make_unique<Replay>(std::move(plan), *context.threads, nullptr, std::move(settings));
  for (std::size_t i = 0; i < replay->plan().inputs.size(); ++i)
    inputs[replay->plan().slots[static_cast<std::size_t>(replay->plan().inputs[i])].name] = i;
  find_step_tensors();
}

ModelProgram::ModelProgram(const CompileRecord& record, const Context& context)
    : graph(record.split), evaluator(std::make_unique<EagerEvaluator>(context, record.range)) {
  check_host_reads(context, "--compile-to");
  for (std::size_t i = 0; i < graph->inputs().size(); ++i) inputs[graph->inputs()[i]->name] = i;
  bound.resize(inputs.size());
  find_step_tensors();
}

// Looks up the inputs by name once, so that steps need not.
void ModelProgram::find_step_tensors() {
  for (std::size_t i = 0; i < kStepTensors; ++i) {
    const auto found = inputs.find(kStepTensorNames[i]);
    step_tensors_[i] = found == inputs.end() ? kNoInput : found->second;
  }
}

std::size_t ModelProgram::place_of(StepTensor which) const {
  const auto i = static_cast<std::size_t>(which);
  CHECK(step_tensors_[i] != kNoInput, "the graph has no input {}", kStepTensorNames[i]);
  return step_tensors_[i];
}

void ModelProgram::bind(std::size_t index, const Tensor& tensor) {
  bind_in_place(index, stable == nullptr ? tensor : stable->place(index, tensor));
}

void ModelProgram::bind_in_place(std::size_t index, const Tensor& tensor) {
  if (replay != nullptr) {
    replay->bind(index, tensor);
  } else {
    bound[index] = evaluator->value(tensor);
  }
}

void ModelProgram::run(ReplayMode mode) {
  if (replay != nullptr) return replay->run(mode);
  results.clear();
  for (const Value& result : run_graph(*graph, *evaluator, bound)) {
    check_pages_stay(result);
    results.push_back(contiguous(result.tensor()));
  }
}

// The next step reads the bound pages, so this step must have written its keys and values into them.
void ModelProgram::check_pages_stay(const Value& result) const {
  const auto is_bound = [&](const Value& input) {
    return input.present() && input.tensor().storage == result.tensor().storage;
  };
  USER_CHECK(result.meta().kind != MetaKind::kv || std::any_of(bound.begin(), bound.end(), is_bound),
             "[{}] must overwrite its KV pages: clone_elimination cannot be skipped here", graph->name);
}

const Tensor& ModelProgram::result(std::size_t index) const {
  return replay != nullptr ? replay->result(index) : results[index];
}

void RangePrograms::capture(ReplayMode mode, std::int64_t rows) {
  for (std::size_t i = 0; i < by_range.size(); ++i)
    if (ranges.all()[i].lo <= rows && by_range[i]->replay != nullptr) by_range[i]->replay->capture(mode);
}

Tensor DeviceWeights::tensor(cuda::StreamDevice* device, Weights& weights, const TracedParam& param) {
  if (device == nullptr) return weights.tensor(param.keys, param.role);
  const auto known = uploaded_.find({param.keys, param.role});
  if (known != uploaded_.end()) return known->second;
  Tensor copy = device->upload(weights.tensor(param.keys, param.role));
  weights.forget(param.keys, param.role);
  return uploaded_.emplace(std::pair(param.keys, param.role), std::move(copy)).first->second;
}

std::int64_t DeviceWeights::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [param, copy] : uploaded_) bytes += copy.storage->bytes();
  return bytes;
}

}  // namespace weft
