#pragma once

// Everything that is made once and passed down: ops, kernels, priorities, options, device, threads. No global state;
// several Contexts may live in one process. builtin/context.h makes one with all that the program brings.

#include <memory>
#include <string>
#include <vector>

#include "base/first_time_work.h"
#include "base/options.h"
#include "base/timeline.h"
#include "cache/compile_cache.h"
#include "compiler/generated_kernels.h"
#include "compiler/log.h"
#include "compiler/size_tuning.h"
#include "ir/op.h"
#include "kernels/select.h"
#include "passes/pass.h"

namespace weft {

namespace cuda {
class StreamDevice;
}
struct PlanSource;

struct Context {
  Options options;
  DeviceDescription device;
  OpTable ops;
  KernelRegistry kernels;
  PriorityLists priorities{{}};
  std::vector<FusionPattern> patterns;  // of the tree, then those brought from outside it, as kCustomFusion
  std::vector<PassRow> passes;          // brought from outside the tree; passes_of in pipeline.h says where they run
  std::unique_ptr<ThreadPool> threads;
  std::shared_ptr<cuda::StreamDevice> stream_device;                       // null where Plans run on the host
  std::unique_ptr<CompileCache> cache = std::make_unique<CompileCache>();  // on disk; disabled unless opened
  std::unique_ptr<GeneratedKernels> generated = std::make_unique<GeneratedKernels>();  // what Plans call of it is here
  std::unique_ptr<FirstTimeWork> first_time_work = std::make_unique<FirstTimeWork>();  // of all that is made in it
  std::shared_ptr<const PlanSource> stored_plans;  // where there are any, nothing is compiled (compiler/plan_store.h)
  SizeTuning size_tuning;                          // what was measured at exact sizes; tune_sizes fills it
  std::shared_ptr<TuningTimer> tuning_timer;       // by which tune_sizes measures; null for the machine's clock
  RankGroups groups;  // that this process, or thread of it, is in: set by what runs several ranks
  Log log;
  std::shared_ptr<Timeline> timeline;  // of all that is done with it; null where nobody asked for one

  // The kernel that runs an op chosen as `provider`; for native, the reference kernel of a primitive. InternalError
  // when there is none.
  const Kernel& kernel_for(const std::string& op, const std::string& provider) const;
  // UserError, with the nearest known name, for an op or a provider of it that there is not.
  void check_priority(const std::string& op, const std::vector<std::string>& providers) const;
};

// While it lives, the op's list begins with `providers`; after it, with what it began with before. UserError for a name
// that is not known, the list as it was. What is compiled or run eagerly in between sees it; nobody else may use the
// Context at that time.
class PriorityScope {
 public:
  PriorityScope(Context& context, const std::string& op, std::vector<std::string> providers);
  ~PriorityScope();
  PriorityScope(const PriorityScope&) = delete;
  PriorityScope& operator=(const PriorityScope&) = delete;

 private:
  Context& context_;
  std::string op_;
  std::vector<std::string> before_;
};

}  // namespace weft
