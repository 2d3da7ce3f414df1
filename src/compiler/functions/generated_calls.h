#pragma once

// How much of an op's call can be computed by generated code. The choice of providers asks this where a kernel yields
// (Kernel::yields) and where `native` was chosen.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/context.h"

namespace weft {

class GeneratedCalls {
 public:
  // The Context must outlive this object, and its priorities must not change.
  explicit GeneratedCalls(const Context& context) : context_(context) {}

  // Whole: the call's meaning lowers to generated functions and to kernels that write nothing but their results. Parts:
  // some of those kernels also overwrite arguments. Nodes that only move data may use reference kernels; if any other
  // node cannot be generated, the answer is nothing. Answers are cached; calls whose meanings differ only in scalars
  // share one. Thread-safe.
  GeneratedExtent extent(const std::string& op, const KernelRequest& request);

 private:
  GeneratedExtent look(const std::string& op, const KernelRequest& request);
  GeneratedExtent look_at_meaning(const Graph& meaning, PassContext& passes) const;

  const Context& context_;
  struct Looked {
    std::shared_ptr<const Graph> meaning;  // lowered
    GeneratedExtent extent;
  };
  std::mutex mutex_;
  std::map<std::string, GeneratedExtent> known_;       // by the text of the call
  std::map<std::string, std::vector<Looked>> looked_;  // by op
};

}  // namespace weft
