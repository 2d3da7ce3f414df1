#pragma once

// The PTX that the build made of the CUDA kernels (cmake/ptx.cmake), to be run by the interpreter.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "tests/cuda/ptx/interpreter.h"

namespace weft::ptx {

// The reason why there is none, or "". Tests then skip.
std::string absence_of_ptx();
// 89 for sm_89, in rising order.
std::vector<int> architectures_of_ptx();

// All files of one architecture.
class BuiltPtx {
 public:
  explicit BuiltPtx(int architecture);  // UserError if a file is no PTX

  // The kernels, each with its file.
  const std::map<std::string, std::shared_ptr<Interpreter>>& kernels() const { return kernels_; }
  void run(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t bytes,
           cuda::MemoryMap& memory);
  // Names of those that ran.
  std::vector<std::string> used() const;

  // CUDA kernels, of all their providers, run in this Context here from now on, not in the emulator.
  void take_over(const Context& context);

 private:
  std::map<std::string, std::shared_ptr<Interpreter>> kernels_;
  std::map<std::string, int> runs_;
};

}  // namespace weft::ptx
