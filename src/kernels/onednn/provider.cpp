#include "kernels/provider.h"

#include <fmt/core.h>
#include <oneapi/dnnl/dnnl_version.h>

#include "base/shared_library.h"
#include "kernels/onednn/library.h"

namespace weft::onednn {
namespace {

struct Opened {
  Library library;
  std::string problem;
};

Opened open() {
  Opened opened;
  const std::string name = fmt::format("libdnnl.so.{}", DNNL_VERSION_MAJOR);
  const auto shared = SharedLibrary::open(name, opened.problem);
  if (!shared) return opened;
  const auto find = [&]<class Function>(Function*& function, const char* symbol) {
    function = shared->find<Function>(symbol);
    if (function == nullptr) opened.problem = fmt::format("{} has no {}", name, symbol);
  };
  Library& library = opened.library;
  find(library.sgemm, "dnnl_sgemm");
  find(library.gemm_u8s8s32, "dnnl_gemm_u8s8s32");
  find(library.version, "dnnl_version");
  find(library.get_max_threads, "omp_get_max_threads");
  find(library.set_num_threads, "omp_set_num_threads");
  return opened;
}

// Once for the process, as the loader has it.
const Opened& opened() {
  static const Opened once = open();
  return once;
}

}  // namespace

Verdict is_there() { return opened().problem.empty() ? Verdict::yes() : Verdict::no(opened().problem); }

const Library& library() {
  CHECK(opened().problem.empty(), "oneDNN is called, but {}", opened().problem);
  return opened().library;
}

}  // namespace weft::onednn

PROVIDER(onednn) {
  if (const Verdict there = onednn::is_there(); !there) return there.reason();
  const dnnl_version_t& version = *onednn::library().version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}
