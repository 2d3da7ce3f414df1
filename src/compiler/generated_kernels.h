#pragma once

// Every function that was generated in a Context, by its name, which stands for the text of its row program: equal
// programs, of whatever layer, range or graph, are one function.

#include <cstddef>
#include <iosfwd>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "kernels/kernel.h"
#include "runtime/generated_kernel.h"

namespace weft {

struct Context;

struct GeneratedObject {
  GeneratedFunction function;
  std::vector<std::byte> code;  // an object file
};

class GeneratedKernels {
 public:
  // Those that are not there yet, found in the compile cache or compiled and stored there, on all threads of the
  // Context. "" or why there is no code for one of them.
  std::string compile(std::span<const RowProgram* const> programs, const Context& context);
  // The same for a function of which there is an object. InternalError when it is none, DeviceError when the system
  // makes no code of memory.
  void load(const GeneratedFunction& function, std::span<const std::byte> code, const Context& context);

  // Null where it is not here. Lives as long as this.
  const Kernel* find(const std::string& name) const;
  // InternalError where it is not here. Valid as long as this lives.
  const GeneratedObject& object(const std::string& name) const;
  std::size_t size() const;

  // Says, once, that no code can be generated, and why.
  void warn_once(std::ostream& to, const std::string& problem);
  // Whether that was said.
  bool has_failed() const;

 private:
  struct Entry {
    GeneratedObject object;
    std::unique_ptr<const Kernel> kernel;
  };

  mutable std::mutex lock_;
  std::map<std::string, Entry> entries_;  // by name
  bool has_failed_ = false;
};

}  // namespace weft
