#pragma once

// Runs kernels of PTX text on the host: the output of nvcc or NVRTC, not its source. An unknown instruction is an error
// with line and text. Memory is checked as in the emulator; shared and local memory that was never written must not be
// read.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/memory_map.h"
#include "kernels/launch_shape.h"
#include "tests/cuda/ptx/parser.h"
#include "tests/cuda/ptx/program.h"

namespace weft::ptx {

class Interpreter {
 public:
  // A module's text; `name` is used in messages. Throws UserError if it is none. A kernel is parsed when it is first
  // used.
  Interpreter(std::string text, std::string name);

  const ModuleText& module() const { return module_; }
  int architecture() const { return module_.architecture(); }
  std::vector<std::string> kernels() const { return module_.kernels(); }

  // Throws UserError if there is no such kernel or its text is wrong.
  const Program& program(const std::string& kernel);

  // Runs a launch to its end, with `bytes` bytes of arguments. Throws DeviceError with kernel, block, thread and
  // instruction if the kernel is at fault. A launch may execute at most `instructions` instructions of warps; beyond
  // that it is assumed not to end.
  void run(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t bytes,
           cuda::MemoryMap& memory, std::uint64_t instructions = std::uint64_t{1} << 32);

 private:
  ModuleText module_;
  std::map<std::string, Program> programs_;
};

}  // namespace weft::ptx
