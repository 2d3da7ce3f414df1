#include "tests/cuda/compiled_layer.h"

#include "builtin/context.h"
#include "compiler/store/plan_store.h"
#include "ir/parse.h"
#include "runtime/cuda/stream_device.h"
#include "tests/cuda/ptx_images.h"
#include "tests/small_layer.h"

namespace weft {

std::shared_ptr<Context> context_of(const std::string& device) {
  Options options;
  options.device = device;
  options.threads = 2;
  auto context = make_context(std::move(options));
  for (const auto& [name, op] : context->ops.all())
    if (!op.is_primitive() && name != "linear") context->priorities.set(name, {"native"});
  context->priorities.set("linear", {"cpu"});
  return context;
}

std::shared_ptr<Context> device_context(std::uint64_t seed, const std::vector<std::string>& nvrtc, int capability) {
  auto context = context_of("fake-cuda");
  put_on_fake_cuda(*context, {.seed = seed, .compute_capability = capability, .read_image = &kernels_of_ptx}, nvrtc);
  return context;
}

std::vector<const Kernel*> generated_kernels(const Plan& plan, const Context& context) {
  std::vector<const Kernel*> kernels;
  for (const PlanStep& step : plan.steps)
    if (context.generated->find(step.op) == step.kernel) kernels.push_back(step.kernel);
  return kernels;
}

CompiledLayer::CompiledLayer(std::shared_ptr<Context> context, const std::string& graph)
    : context_(std::move(context)), graph_(parse_graph(graph, context_->ops)) {
  graph_->bounds[graph_->governing_symbol()] = {1, kMostRows};
  plan_ = find_or_compile(*graph_, *context_, {{1, kMostRows}}, {}, nullptr).plans.at(0);
  ReplaySettings settings;
  settings.device = context_->stream_device.get();
  replay_ = std::make_unique<Replay>(plan_, *context_->threads, nullptr, settings);
}

std::vector<std::string> CompiledLayer::run(int rows, ReplayMode mode) {
  cuda::StreamDevice* const device = context_->stream_device.get();
  const std::vector<Tensor> inputs = layer_inputs(*graph_, rows).tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    replay_->bind(i, device == nullptr ? inputs[i] : device->upload(inputs[i]));
  replay_->run(mode);
  std::vector<std::string> results;
  for (std::size_t i = 0; i < graph_->results().size(); ++i) {
    const Tensor result =
        device == nullptr ? contiguous(replay_->result(i)) : contiguous(device->download(replay_->result(i)));
    results.emplace_back(reinterpret_cast<const char*>(result.data()),
                         static_cast<std::size_t>(result.meta.bytes().number()));
  }
  return results;
}

}  // namespace weft
