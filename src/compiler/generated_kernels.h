#pragma once

// Every function that was generated in a Context, by the text of its row program: equal programs, of whatever layer,
// range or graph, are one function.

#include <iosfwd>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "codegen/row_program.h"
#include "kernels/kernel.h"
#include "tensor/device.h"

namespace weft {

class GeneratedKernels {
 public:
  // Compiles those that are not there yet, together. "" or why there is no code for any of them.
  std::string compile(std::span<const RowProgram* const> programs, const DeviceDescription& device);

  // Null where it was not compiled. Lives as long as this.
  const Kernel* find(const RowProgram& program) const;
  std::size_t size() const;

  // Says, once, that native ops run one by one, and why.
  void warn_once(std::ostream& to, const std::string& problem);

 private:
  mutable std::mutex lock_;
  std::map<std::string, std::unique_ptr<const Kernel>> kernels_;  // by text
  bool has_warned_ = false;
};

}  // namespace weft
