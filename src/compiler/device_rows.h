#pragma once

// Row programs as code of a device: the CUDA C++ of codegen/cuda_row_text.h, compiled by NVRTC while the program runs.
// Images that were made before need no NVRTC.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cache/compile_cache.h"
#include "codegen/row_program.h"
#include "runtime/cuda/nvrtc.h"

namespace weft {

class DeviceRows {
 public:
  // For devices that take such code of this architecture, 90 for sm_90. It is compiled by the first NVRTC of `places`
  // (nvrtc_places) that knows the architecture; where there is none, `problem` says why.
  DeviceRows(const std::vector<std::string>& places, int architecture, cuda::NvrtcCode code);

  // Why nothing can be compiled; "" where it can.
  const std::string& problem() const { return problem_; }
  std::string code_text() const;      // PTX for sm_90
  std::string compiler_text() const;  // NVRTC 13.0; "" where there is none

  // The source of the program's kernel. UserError where the device has no room for it.
  cuda::NvrtcSource source(const RowProgram& program) const;
  // Whose images may be used: its own compiler's, or, where it has none, those of every compiler that left such code
  // for the architecture in the cache.
  std::vector<std::string> compilers(const CompileCache& cache) const;
  // What an image of the source is made of, and by which of these.
  CacheKey key(const cuda::NvrtcSource& source, const std::string& compiler) const;
  // The image (Driver::load_module). UserError with the compiler's log where the source does not compile, DeviceError
  // where the compiler fails, or with the problem where there is none. For several threads.
  std::vector<std::byte> compile(const cuda::NvrtcSource& source) const;

 private:
  std::unique_ptr<const cuda::Nvrtc> compiler_;
  std::string problem_;
  int architecture_;
  cuda::NvrtcCode code_;
};

}  // namespace weft
