#pragma once

// Everything that is created once and passed down: ops, kernels, priorities, options, device, threads. There is no
// global state; several Contexts may exist in one process. builtin/context.h makes one with everything that the program
// includes.

#include <memory>
#include <string>
#include <vector>

#include "base/first_time_work.h"
#include "base/timeline.h"
#include "cache/compile_cache.h"
#include "compiler/functions/generated_kernels.h"
#include "compiler/log.h"
#include "compiler/tune/size_tuning.h"
#include "ir/op.h"
#include "kernels/select.h"
#include "options/options.h"
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
  std::vector<FusionPattern> patterns;  // built-in ones, then those from plugins and callers, as kCustomFusion
  std::vector<PassRow> passes;          // from plugins and callers; passes_of in pipeline.h says where they run
  std::unique_ptr<ThreadPool> threads;
  std::shared_ptr<cuda::StreamDevice> stream_device;                       // null where Plans run on the host
  std::unique_ptr<CompileCache> cache = std::make_unique<CompileCache>();  // on disk; disabled unless opened
  std::unique_ptr<GeneratedKernels> generated = std::make_unique<GeneratedKernels>();  // functions that Plans call
  std::unique_ptr<FirstTimeWork> first_time_work = std::make_unique<FirstTimeWork>();  // shared by the whole Context
  std::shared_ptr<const PlanSource> stored_plans;  // if set, nothing is compiled (compiler/store/plan_store.h)
  SizeTuning size_tuning;                          // measurements at exact sizes; tune_sizes fills it
  std::shared_ptr<TuningTimer> tuning_timer;       // the clock of tune_sizes; null for the machine's clock
  RankGroups groups;  // the groups of this rank (a process or a thread); set by the code that runs several ranks
  Log log;
  std::shared_ptr<Timeline> timeline;  // records work done with this Context; null where not asked for

  // The kernel that runs an op with this provider; for `native`, the reference kernel of a primitive. InternalError
  // when there is none.
  const Kernel& kernel_for(const std::string& op, const std::string& provider) const;
  // UserError, with the nearest known name, if the op or one of its providers does not exist.
  void check_priority(const std::string& op, const std::vector<std::string>& providers) const;
};

// While the scope is alive, the op's list begins with `providers`; afterwards the list is as it was before. UserError
// for an unknown name; the list is then unchanged. Code that is compiled or run eagerly in the meantime uses the
// changed list; no other thread may use the Context during that time.
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
