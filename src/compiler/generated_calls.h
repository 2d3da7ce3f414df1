#pragma once

// How much of an op's call generated code computes, for choices: asked where a kernel yields (Kernel::yields), and
// where `native` was chosen.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/context.h"

namespace weft {

class GeneratedCalls {
 public:
  // The Context must outlive it, its priorities unchanged.
  explicit GeneratedCalls(const Context& context) : context_(context) {}

  // Whole: the call's meaning comes out as generated functions, and kernels that write nothing but their results.
  // Parts: kernels among them write over arguments. What only moves data may be left to reference kernels; nothing is
  // generated where anything else is. Remembers its answers; calls whose meanings differ in scalars alone have one.
  // Thread-safe.
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
