#include "compiler/functions/device_rows.h"

#include <algorithm>
#include <set>
#include <span>

#include <fmt/ranges.h>

#include "base/error.h"
#include "codegen/cuda_row_text.h"

namespace weft {
namespace {

constexpr const char* kKind = "device_rows";
constexpr const char* kCode = "code";
constexpr const char* kCompiler = "compiler";

std::string value_of(const std::vector<CacheFactor>& factors, const std::string& name) {
  const auto found =
      std::find_if(factors.begin(), factors.end(), [&](const CacheFactor& factor) { return factor.name == name; });
  return found == factors.end() ? "" : found->value;
}

}  // namespace

DeviceRows::DeviceRows(const std::vector<std::string>& places, int architecture, cuda::NvrtcCode code)
    : architecture_(architecture), code_(code) {
  std::string unfit;
  for (const std::string& place : places) {
    auto compiler = cuda::Nvrtc::open(std::vector{place}, problem_);
    if (compiler == nullptr) continue;
    const std::vector<int>& known = compiler->architectures();
    if (std::find(known.begin(), known.end(), architecture) != known.end()) {
      compiler_ = std::move(compiler);
      problem_.clear();
      return;
    }
    if (unfit.empty())
      unfit = fmt::format("the device is sm_{}, but NVRTC {} ({}) compiles for sm_{}", architecture,
                          cuda::nvrtc_version_text(compiler->version()), compiler->library(), fmt::join(known, ", "));
  }
  if (unfit.empty()) cuda::Nvrtc::open(places, unfit);  // sets `unfit` to a message that lists all locations
  problem_ = unfit;
}

std::string DeviceRows::code_text() const {
  return fmt::format("{} for sm_{}", code_ == cuda::NvrtcCode::ptx ? "PTX" : "machine code", architecture_);
}

std::string DeviceRows::compiler_text() const {
  return compiler_ == nullptr ? "" : "NVRTC " + cuda::nvrtc_version_text(compiler_->version());
}

cuda::NvrtcSource DeviceRows::source(const RowProgram& program) const {
  return {.name = program.name() + ".cu",
          .text = cuda_row_prologue() + cuda_row_text(program),
          .headers = cuda_row_headers()};
}

std::vector<std::string> DeviceRows::compilers(const CompileCache& cache) const {
  if (compiler_ != nullptr) return {compiler_text()};
  std::set<std::string> known;
  try {
    for (const CacheListing& entry : cache.list())
      if (entry.kind == kKind && value_of(entry.factors, kCode) == code_text())
        known.insert(value_of(entry.factors, kCompiler));
  } catch (const Error&) {  // a folder that cannot be read has no images
  }
  std::vector<std::string> newest(known.begin(), known.end());
  // "NVRTC 13.10" is newer than "NVRTC 13.9".
  std::sort(newest.begin(), newest.end(),
            [](const std::string& a, const std::string& b) { return std::pair(a.size(), a) > std::pair(b.size(), b); });
  return newest;
}

CacheKey DeviceRows::key(const cuda::NvrtcSource& source, const std::string& compiler) const {
  std::string headers;
  for (const auto& [name, text] : source.headers) headers += name + "\n" + text;
  return {kKind,
          {{kCode, code_text()},
           {kCompiler, compiler},
           {"recipe", hash_bytes(cuda::Nvrtc::recipe(architecture_, code_, {kCudaRowOption})).hex()},
           {"headers", hash_bytes(headers).hex()},
           {"source", hash_bytes(source.text).hex()}}};
}

std::vector<std::byte> DeviceRows::compile(const cuda::NvrtcSource& source) const {
  if (compiler_ == nullptr) fail_device("[{}] is wanted as {}, but {}", source.name, code_text(), problem_);
  const std::string image = compiler_->compile(source, architecture_, code_, {kCudaRowOption});
  const auto bytes = std::as_bytes(std::span(image));
  return {bytes.begin(), bytes.end()};
}

}  // namespace weft
