#pragma once

// Row programs as device code: the CUDA C++ of codegen/cuda_row_text.h, compiled by NVRTC at run time. Images that were
// compiled earlier need no NVRTC.

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
  // For devices of this architecture, 90 for sm_90. The code is compiled by the first NVRTC of `places` (nvrtc_places)
  // that knows the architecture; where there is none, `problem` gives the reason.
  DeviceRows(const std::vector<std::string>& places, int architecture, cuda::NvrtcCode code);

  // Why nothing can be compiled; "" where it can.
  const std::string& problem() const { return problem_; }
  std::string code_text() const;      // PTX for sm_90
  std::string compiler_text() const;  // NVRTC 13.0; "" where there is none

  // The source of the program's kernel. UserError where the kernel does not fit the device.
  cuda::NvrtcSource source(const RowProgram& program) const;
  // The compilers whose images may be used: this object's own compiler or, without one, all compilers whose images for
  // this architecture are in the cache.
  std::vector<std::string> compilers(const CompileCache& cache) const;
  // The cache key of an image of this source, made by this compiler.
  CacheKey key(const cuda::NvrtcSource& source, const std::string& compiler) const;
  // Compiles to an image (for Driver::load_module). UserError with the compiler's log where the source does not
  // compile; DeviceError where the compiler fails, or where there is none, with `problem`. Thread-safe.
  std::vector<std::byte> compile(const cuda::NvrtcSource& source) const;

 private:
  std::unique_ptr<const cuda::Nvrtc> compiler_;
  std::string problem_;
  int architecture_;
  cuda::NvrtcCode code_;
};

}  // namespace weft
