#pragma once

// Which kernel runs: the first provider of the priority list that supports the call, with every refusal on the way
// kept.

#include <map>
#include <string>
#include <vector>

#include "kernels/registry.h"

namespace weft {

struct Refusal {
  std::string provider;
  std::string reason;
};

struct Choice {
  std::string provider;
  const Kernel* kernel =
      nullptr;                   // null for `native`: the op's meaning, or its reference kernel when it is a primitive
  std::string reason;            // why this one: "first in the priority list that supports the call"
  std::vector<Refusal> refused;  // those tried before it, in order
};

// Priority lists: the user's names first, then the device's defaults not named already, then `native`.
class PriorityLists {
 public:
  explicit PriorityLists(std::vector<std::string> device_defaults) : defaults_(std::move(device_defaults)) {}
  void set(const std::string& op, std::vector<std::string> providers) { user_[op] = std::move(providers); }
  std::vector<std::string> list(const std::string& op) const;
  const std::map<std::string, std::vector<std::string>>& user() const { return user_; }

 private:
  std::vector<std::string> defaults_;
  std::map<std::string, std::vector<std::string>> user_;
};

// The choice for one (node, token range). `op` is the op's name.
Choice select_kernel(const KernelRegistry& registry, const PriorityLists& priorities, const std::string& op,
                     const KernelRequest& request, bool batch_invariant);

}  // namespace weft
