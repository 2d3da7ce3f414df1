#include "tests/cuda/attention_case.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/cuda/lib/run_call.h"
#include "kernels/launch_queue.h"

namespace weft {
namespace {

// Keeps the first launch for the emulator to measure.
struct Launched : LaunchQueue {
  std::string device() const override { return "no device"; }
  void launch(const std::string& name, const LaunchShape& of, std::span<const std::byte> bytes) override {
    if (!kernel.empty()) return;
    kernel = name;
    shape = of;
    arguments.assign(bytes.begin(), bytes.end());
  }
  void run_on_host(const std::string& name, std::function<void()>) override { CHECK(false, "[{}] is no launch", name); }

  std::string kernel;
  LaunchShape shape;
  std::vector<std::byte> arguments;
};

}  // namespace

std::int64_t AttentionCase::rows() const {
  std::int64_t rows = 0;
  for (const auto& [of_step, length] : sequences) rows += of_step;
  return rows;
}

SampleCall AttentionCase::call(const Context& context) const {
  int longest = 0;
  for (const auto& [of_step, length] : sequences) longest = std::max(longest, length);
  const std::int64_t pages = (longest + kv.block - 1) / kv.block * static_cast<std::int64_t>(sequences.size());
  const Sample sample{{{"query", {rows(), kv.heads * group, kv.head_dim}},
                       SampleTensor::pages("kv", kv, pages),
                       SampleTensor::batch("batch", sequences, static_cast<int>(kv.block))},
                      {{"scale", 0.125}, {"window", window}}};
  return make_sample_call(context.ops.at("attention"), sample, query);
}

Tensor attend(const Context& context, const std::vector<Tensor>& operands, const Attributes& attributes,
              std::size_t scratch_bytes, const std::string& provider) {
  Tensor result = Tensor::empty(operands[0].meta);
  std::vector<TensorView> views;
  for (const Tensor& operand : operands) views.push_back(operand.view());
  const std::vector<TensorView> results = {result.view()};
  std::vector<std::byte> scratch(scratch_bytes);
  context.kernel_for("attention", provider).run({views, results, attributes, scratch, *context.threads});
  return result;
}

std::vector<std::byte> bytes_of_row(const Tensor& tensor, std::int64_t row) {
  const std::int64_t bytes = tensor.meta.bytes().number() / tensor.meta.shape[0].number();
  return {tensor.data() + row * bytes, tensor.data() + (row + 1) * bytes};
}

std::vector<cuda::AccessTraffic> attention_traffic(const Context& context, const SampleCall& made,
                                                   const std::string& provider) {
  const Tensor result = Tensor::empty(made.operands[0].meta);
  std::vector<TensorView> operands, results = {result.view()};
  for (const Tensor& operand : made.operands) operands.push_back(operand.view());
  Launched launched;
  const KernelCall call{operands, results, made.attributes, {}, *context.threads, nullptr, &launched};
  context.kernel_for("attention", provider).run(call);
  cuda::MemoryMap memory = cuda::memory_of(call);
  cuda::Emulator emulator({.measure = true});
  emulator.run(cuda::emulated_kernel(launched.kernel), launched.shape, launched.arguments.data(), memory);
  std::vector<cuda::AccessTraffic> most = emulator.traffic();
  std::sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return most;
}

}  // namespace weft
