#include "kernels/launch_queue.h"

#include "base/error.h"

namespace weft {
namespace {

// A call with its own copies of the views, because the caller changes its views for the next run.
class HostCall {
 public:
  HostCall(const Kernel& kernel, const KernelCall& call)
      : kernel_(kernel),
        operand_count_(call.operands.size()),
        attributes_(call.attributes),
        scratch_(call.scratch),
        threads_(call.threads),
        groups_(call.groups) {
    views_.reserve(call.operands.size() + call.results.size());
    views_.insert(views_.end(), call.operands.begin(), call.operands.end());
    views_.insert(views_.end(), call.results.begin(), call.results.end());
  }
  void operator()() const {
    const std::span<const TensorView> views(views_);
    kernel_.run({.operands = views.first(operand_count_),
                 .results = views.subspan(operand_count_),
                 .attributes = attributes_,
                 .scratch = scratch_,
                 .threads = threads_,
                 .groups = groups_});
  }

 private:
  const Kernel& kernel_;
  std::vector<TensorView> views_;  // operands, then results
  std::size_t operand_count_;
  const Attributes& attributes_;
  std::span<std::byte> scratch_;
  ThreadPool& threads_;
  const RankGroups* groups_;
};

}  // namespace

void LaunchQueue::call_library(const std::string& function, std::span<const std::byte>) {
  fail_device("[{}] no library that has it was opened for this queue", function);
}

void queue_call(const Kernel& kernel, const KernelCall& call) {
  CHECK(call.queue != nullptr, "a call of {}@{} has no queue", kernel.op, kernel.provider);
  const auto name = [&] { return kernel.op + "@" + kernel.provider; };
  if (kernel.launches) {
    named_by([&] { return "[" + call.queue->device() + "] " + name(); }, [&] { kernel.run(call); });
  } else {
    call.queue->run_on_host(name(), HostCall(kernel, call));
  }
}

}  // namespace weft
