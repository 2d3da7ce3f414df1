// Kernels that exist with the device's own mathematics and with reference math: which provider launches which, and the
// distance of the results.

#include <set>

#include <gtest/gtest.h>

#include "apps/device_check/difference.h"
#include "builtin/context.h"
#include "builtin/default_priorities.h"
#include "compiler/run/sample_call.h"
#include "emulator/approximation.h"
#include "kernels/launch_queue.h"
#include "tests/cuda/cuda_context.h"

namespace weft::kernel_forms_test {

using cuda::Mathematics;

std::vector<std::string> ops_of_two_forms(const Context& context) { return ops_of_provider(context, "cuda_reference"); }

// The provider that is chosen for the first sample of an op that provider cuda supports.
std::string chosen(const Context& context, const PriorityLists& priorities, const std::string& op,
                   bool batch_invariant = false) {
  for (const SampleCall& call : sample_calls(context.ops.at(op))) {
    if (!supports_of_cuda(context, op, call.operands, call.attributes)) continue;
    const auto operands = metas_of(call.operands);
    const std::vector<Meta> results = infer_results(context.ops.at(op), context.ops, operands, call.attributes);
    return select_kernel(context.kernels, priorities, op, {operands, results, call.attributes, {1, 64}},
                         batch_invariant)
        .provider;
  }
  return "takes none of the samples";
}

TEST(KernelForms, AreTheDevicesOwnOnAGpuAndTheReferencesOnAFakeOne) {
  const auto context = cuda_context();
  const std::vector<std::string> ops = ops_of_two_forms(*context);
  EXPECT_GE(ops.size(), 15u);
  for (const std::string& op : ops)
    for (const bool batch_invariant : {false, true}) {
      const auto first = [&](DeviceType device) {
        return chosen(*context, default_priorities(device), op, batch_invariant);
      };
      EXPECT_EQ(first(DeviceType::cuda), "cuda") << op;
      EXPECT_EQ(first(DeviceType::fake_cuda), "cuda_reference") << op;
    }
  EXPECT_EQ(chosen(*context, context->priorities, "rms_norm"), "cuda_reference");
}

TEST(KernelForms, AreChosenByPriority) {
  Options options;
  options.device = "fake-cuda";
  options.ir_op_priority["rms_norm"] = {"cuda"};
  const auto context = make_context(std::move(options));
  EXPECT_EQ(chosen(*context, context->priorities, "rms_norm"), "cuda");
  EXPECT_EQ(chosen(*context, context->priorities, "silu_and_mul"), "cuda_reference");
  PriorityLists on_gpu = default_priorities(DeviceType::cuda);
  on_gpu.set("silu_and_mul", {"cuda_reference"});
  EXPECT_EQ(chosen(*context, on_gpu, "silu_and_mul"), "cuda_reference");
  EXPECT_EQ(chosen(*context, on_gpu, "rms_norm"), "cuda");
}

class Names : public LaunchQueue {
 public:
  std::string device() const override { return "no device"; }
  void launch(const std::string& kernel, const LaunchShape&, std::span<const std::byte>) override {
    names.push_back(kernel);
  }
  void run_on_host(const std::string& name, std::function<void()>) override { names.push_back("the host: " + name); }

  std::vector<std::string> names;
};

// The one kernel that a call launches.
std::string launched(const Context& context, const std::string& op, const SampleCall& call, Mathematics mathematics) {
  const std::vector<Tensor> results = by_cuda(context, op, call.operands, call.attributes);
  std::vector<TensorView> from, to;
  for (const Tensor& operand : call.operands) from.push_back(operand.view());
  for (const Tensor& result : results) to.push_back(result.view());
  Names queue;
  context.kernel_for(op, provider_of(mathematics))
      .run({.operands = from,
            .results = to,
            .attributes = call.attributes,
            .scratch = {},
            .threads = *context.threads,
            .queue = &queue});
  EXPECT_EQ(queue.names.size(), 1u) << op;
  return queue.names.empty() ? "" : queue.names[0];
}

TEST(KernelForms, LaunchTheKernelsOfTheirMathematics) {
  const auto context = cuda_context();
  std::set<std::string> kernels;
  for (const std::string& op : ops_of_two_forms(*context))
    for (const SampleCall& call : sample_calls(context->ops.at(op))) {
      if (!supports_of_cuda(*context, op, call.operands, call.attributes)) continue;
      SCOPED_TRACE(call.text);
      const std::string device = launched(*context, op, call, Mathematics::device);
      const std::string reference = launched(*context, op, call, Mathematics::reference);
      ASSERT_TRUE(device.ends_with("_device") && reference.ends_with("_reference")) << device << " " << reference;
      EXPECT_EQ(device.substr(0, device.rfind('_')), reference.substr(0, reference.rfind('_')));
      kernels.insert(device);
    }
  EXPECT_GE(kernels.size(), 40u);
}

DType first_dtype(const SampleCall& call) { return call.operands[0].meta.dtype; }

// Within the bound that weft_device_check uses for a GPU, for any error of the device's functions within their bounds.
TEST(KernelForms, OfTheDeviceStayWithinItsBoundOnEverySample) {
  const auto context = cuda_context();
  std::size_t compared = 0, different = 0;
  for (const std::string& op : ops_of_two_forms(*context))
    for (const SampleCall& call : sample_calls(context->ops.at(op))) {
      if (!supports_of_cuda(*context, op, call.operands, call.attributes)) continue;
      SCOPED_TRACE(call.text);
      const std::vector<Tensor> wanted = by_cuda(*context, op, call.operands, call.attributes);
      for (const cuda::Approximation approximation : {cuda::Approximation::exact, cuda::Approximation::scattered}) {
        cuda::current_approximation = approximation;
        const std::vector<Tensor> came = by_cuda(*context, op, call.operands, call.attributes, "cuda");
        cuda::current_approximation = cuda::Approximation::exact;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          const auto bytes_of = [](const Tensor& tensor) {
            return std::span(tensor.data(), static_cast<std::size_t>(tensor.meta.bytes().number()));
          };
          const device_check::RecordedBuffer record{.name = op + fmt::format(" result {}", i),
                                                    .dtype = wanted[i].meta.dtype,
                                                    .before = {},
                                                    .wanted = {bytes_of(wanted[i]).begin(), bytes_of(wanted[i]).end()}};
          EXPECT_EQ(difference_of(record, bytes_of(came[i]), device_check::Bound::last_places, first_dtype(call)), "");
          ++compared;
          different += difference_of(record, bytes_of(came[i]), device_check::Bound::bits, first_dtype(call)) != "";
        }
      }
    }
  EXPECT_GE(compared, 200u);
  EXPECT_GE(different, 20u) << "the forms have the same bits";
}

}  // namespace weft::kernel_forms_test
