#pragma once

// oneDNN as the kernels of this folder use it: each call on one thread, for one slice of columns or block
// of rows, from our own pool.
//
// The library is opened when a call first asks whether it is supported, not linked: it takes 2 ms and 15 MB, which only
// those pay who name it in a priority list.

#include <cstdint>

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "base/error.h"
#include "kernels/kernel.h"

namespace weft::onednn {

struct Library {
  decltype(&dnnl_sgemm) sgemm = nullptr;
  decltype(&dnnl_gemm_u8s8s32) gemm_u8s8s32 = nullptr;
  decltype(&dnnl_version) version = nullptr;
  // What primitives are made of and run with.
  decltype(&dnnl_engine_create) engine_create = nullptr;
  decltype(&dnnl_engine_destroy) engine_destroy = nullptr;
  decltype(&dnnl_stream_create) stream_create = nullptr;
  decltype(&dnnl_stream_destroy) stream_destroy = nullptr;
  decltype(&dnnl_memory_desc_init_by_strides) memory_desc_init_by_strides = nullptr;
  decltype(&dnnl_memory_desc_get_size) memory_desc_get_size = nullptr;
  decltype(&dnnl_memory_create) memory_create = nullptr;
  decltype(&dnnl_memory_destroy) memory_destroy = nullptr;
  decltype(&dnnl_softmax_forward_desc_init) softmax_forward_desc_init = nullptr;
  decltype(&dnnl_primitive_attr_create) primitive_attr_create = nullptr;
  decltype(&dnnl_primitive_attr_set_scratchpad_mode) primitive_attr_set_scratchpad_mode = nullptr;
  decltype(&dnnl_primitive_attr_destroy) primitive_attr_destroy = nullptr;
  decltype(&dnnl_primitive_desc_create) primitive_desc_create = nullptr;
  decltype(&dnnl_primitive_desc_query_md) primitive_desc_query_md = nullptr;
  decltype(&dnnl_primitive_desc_destroy) primitive_desc_destroy = nullptr;
  decltype(&dnnl_primitive_create) primitive_create = nullptr;
  decltype(&dnnl_primitive_execute) primitive_execute = nullptr;
  decltype(&dnnl_primitive_destroy) primitive_destroy = nullptr;
  // Of the OpenMP that oneDNN runs on.
  decltype(&omp_get_max_threads) get_max_threads = nullptr;
  decltype(&omp_set_num_threads) set_num_threads = nullptr;
};

// Opens the library the first time; no, with the loader's words, when this system lacks it.
Verdict is_there();
// InternalError before is_there() said yes.
const Library& library();

// Holds oneDNN's calls from this thread to this thread while it lives, and leaves what the program that calls Weft has
// asked of OpenMP as it was. No OpenMP thread is started.
class OneThread {
 public:
  OneThread() : before_(library().get_max_threads()) { library().set_num_threads(1); }
  ~OneThread() { library().set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

inline void check_status(const char* function, dnnl_status_t status) {
  if (status != dnnl_success) fail_device("[onednn] {} failed with status {}", function, static_cast<int>(status));
}

inline Verdict runs_on_cpu(const DeviceDescription& device) {
  return device.id.type == DeviceType::cpu ? Verdict::yes() : Verdict::no("runs on the CPU only");
}

// Columns of one slice. Fixed, not a share of the threads: sums may depend on it, and must not depend on those.
inline constexpr std::int64_t kSliceColumns = 128;

}  // namespace weft::onednn
