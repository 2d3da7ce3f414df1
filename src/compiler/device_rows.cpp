#include "compiler/device_rows.h"

#include <algorithm>
#include <span>

#include <fmt/ranges.h>

#include "base/error.h"
#include "codegen/cuda_row_text.h"

namespace weft {

std::unique_ptr<const DeviceRows> DeviceRows::open(const std::vector<std::string>& places, int architecture,
                                                   cuda::NvrtcCode code, std::string& problem) {
  std::string unfit;
  for (const std::string& place : places) {
    auto compiler = cuda::Nvrtc::open(std::vector{place}, problem);
    if (compiler == nullptr) continue;
    const std::vector<int>& known = compiler->architectures();
    if (std::find(known.begin(), known.end(), architecture) != known.end())
      return std::unique_ptr<const DeviceRows>(new DeviceRows(std::move(compiler), architecture, code));
    if (unfit.empty())
      unfit = fmt::format("the device is sm_{}, but NVRTC {} ({}) compiles for sm_{}", architecture,
                          cuda::nvrtc_version_text(compiler->version()), compiler->library(), fmt::join(known, ", "));
  }
  problem = unfit;
  if (unfit.empty()) cuda::Nvrtc::open(places, problem);  // which tells of all places
  return nullptr;
}

cuda::NvrtcSource DeviceRows::source(const RowProgram& program) const {
  return {.name = program.name() + ".cu",
          .text = cuda_row_prologue() + cuda_row_text(program),
          .headers = cuda_row_headers()};
}

CacheKey DeviceRows::key(const cuda::NvrtcSource& source) const {
  std::string headers;
  for (const auto& [name, text] : source.headers) headers += name + "\n" + text;
  return {"device_rows",
          {{"code", text()},
           {"recipe", hash_bytes(cuda::Nvrtc::recipe(architecture_, code_, {kCudaRowOption})).hex()},
           {"headers", hash_bytes(headers).hex()},
           {"source", hash_bytes(source.text).hex()}}};
}

std::vector<std::byte> DeviceRows::compile(const cuda::NvrtcSource& source) const {
  const std::string image = compiler_->compile(source, architecture_, code_, {kCudaRowOption});
  const auto bytes = std::as_bytes(std::span(image));
  return {bytes.begin(), bytes.end()};
}

std::string DeviceRows::text() const {
  return fmt::format("{} of NVRTC {} for sm_{}", code_ == cuda::NvrtcCode::ptx ? "PTX" : "machine code",
                     cuda::nvrtc_version_text(compiler_->version()), architecture_);
}

}  // namespace weft
