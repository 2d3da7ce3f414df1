#pragma once

// Runs kernels of PTX text on the host: what nvcc or NVRTC made, not the source it was made of. An instruction that the
// interpreter does not know is an error that names line and text. Memory is checked as in the emulator; shared and
// local memory that nobody wrote may not be read.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/emulator/memory_map.h"
#include "kernels/cuda/lib/launch.h"
#include "tests/cuda/ptx/parser.h"
#include "tests/cuda/ptx/program.h"

namespace weft::ptx {

class Interpreter {
 public:
  // A module's text; `name` stands in messages. UserError where it is none. Kernels are read when first asked for.
  Interpreter(std::string text, std::string name);

  const ModuleText& module() const { return module_; }
  int architecture() const { return module_.architecture(); }
  std::vector<std::string> kernels() const { return module_.kernels(); }

  // UserError where there is no such kernel or its text is wrong.
  const Program& program(const std::string& kernel);

  // Runs a launch to its end; `bytes` of arguments. DeviceError, naming kernel, block, thread and instruction, where
  // the kernel is at fault. Of at most `instructions` of warps; a launch that takes more does not end, it is assumed.
  void run(const std::string& kernel, const cuda::LaunchShape& shape, const void* arguments, std::size_t bytes,
           cuda::MemoryMap& memory, std::uint64_t instructions = std::uint64_t{1} << 32);

 private:
  ModuleText module_;
  std::map<std::string, Program> programs_;
};

}  // namespace weft::ptx
