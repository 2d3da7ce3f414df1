#pragma once

// Row programs as code of a device: the CUDA C++ of codegen/cuda_row_text.h, compiled by NVRTC while the program runs.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cache/cache_key.h"
#include "codegen/row_program.h"
#include "runtime/cuda/nvrtc.h"

namespace weft {

class DeviceRows {
 public:
  // By the first NVRTC of `places` (nvrtc_places) that knows the architecture, 90 for sm_90. Null, and in `problem`
  // why, where there is none.
  static std::unique_ptr<const DeviceRows> open(const std::vector<std::string>& places, int architecture,
                                                cuda::NvrtcCode code, std::string& problem);

  // The source of the program's kernel. UserError where the device has no room for it.
  cuda::NvrtcSource source(const RowProgram& program) const;
  // What an image of it is made of, and by what.
  CacheKey key(const cuda::NvrtcSource& source) const;
  // The image (Driver::load_module). UserError with the compiler's log where the source does not compile, DeviceError
  // where the compiler fails. For several threads.
  std::vector<std::byte> compile(const cuda::NvrtcSource& source) const;
  // PTX of NVRTC 13.0 for sm_90
  std::string text() const;

 private:
  DeviceRows(std::unique_ptr<const cuda::Nvrtc> compiler, int architecture, cuda::NvrtcCode code)
      : compiler_(std::move(compiler)), architecture_(architecture), code_(code) {}

  std::unique_ptr<const cuda::Nvrtc> compiler_;
  int architecture_;
  cuda::NvrtcCode code_;
};

}  // namespace weft
