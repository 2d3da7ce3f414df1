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
  const auto find = [&](auto*& function, const char* symbol) { shared->find(symbol, function, opened.problem); };
  Library& library = opened.library;
  find(library.sgemm, "dnnl_sgemm");
  find(library.gemm_u8s8s32, "dnnl_gemm_u8s8s32");
  find(library.version, "dnnl_version");
  find(library.engine_create, "dnnl_engine_create");
  find(library.engine_destroy, "dnnl_engine_destroy");
  find(library.stream_create, "dnnl_stream_create");
  find(library.stream_destroy, "dnnl_stream_destroy");
  find(library.memory_desc_init_by_strides, "dnnl_memory_desc_init_by_strides");
  find(library.memory_desc_get_size, "dnnl_memory_desc_get_size");
  find(library.memory_create, "dnnl_memory_create");
  find(library.memory_destroy, "dnnl_memory_destroy");
  find(library.softmax_forward_desc_init, "dnnl_softmax_forward_desc_init");
  find(library.primitive_attr_create, "dnnl_primitive_attr_create");
  find(library.primitive_attr_set_scratchpad_mode, "dnnl_primitive_attr_set_scratchpad_mode");
  find(library.primitive_attr_destroy, "dnnl_primitive_attr_destroy");
  find(library.primitive_desc_create, "dnnl_primitive_desc_create");
  find(library.primitive_desc_query_md, "dnnl_primitive_desc_query_md");
  find(library.primitive_desc_destroy, "dnnl_primitive_desc_destroy");
  find(library.primitive_create, "dnnl_primitive_create");
  find(library.primitive_execute, "dnnl_primitive_execute");
  find(library.primitive_destroy, "dnnl_primitive_destroy");
  find(library.get_max_threads, "omp_get_max_threads");
  find(library.set_num_threads, "omp_set_num_threads");
  return opened;
}

// The library is opened once for the process, as the loader does it.
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
