#pragma once

// Plans written by hand, random Plans, and the comparison of two Plans.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan_file.h"

namespace weft {

// Kernels without code, created when they are first requested.
class NamedKernels {
 public:
  const Kernel* find(const std::string& op, const std::string& provider);
  KernelLookup lookup();
  std::size_t size() const { return kernels_.size(); }

 private:
  std::map<std::pair<std::string, std::string>, Kernel> kernels_;
};

// It cannot run. It has every kind of slot, type, dim and attribute, and an operand that is absent.
Plan plan_of_every_part(NamedKernels& kernels);

// Any list of numbers is such a Plan.
Plan plan_of_numbers(const std::vector<int>& numbers, NamedKernels& kernels);

// "" or the first part in which two Plans differ. Kernels are the same when they are one.
std::string plan_difference(const Plan& a, const Plan& b);

}  // namespace weft
