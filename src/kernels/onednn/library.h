#pragma once

// oneDNN for the kernels of this folder. Each call runs on one thread of our own pool, for one slice of columns or
// block of rows.
//
// The library is not linked. It is opened when a call first asks whether it is supported. Opening takes 2 ms and 15 MB,
// so only users who name it in a priority list pay for it.

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
  // For making and running primitives.
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
  // From the OpenMP library that oneDNN uses.
  decltype(&omp_get_max_threads) get_max_threads = nullptr;
  decltype(&omp_set_num_threads) set_num_threads = nullptr;
};

// Opens the library at the first call. Returns no, with the loader's message, if this system does not have it.
Verdict is_there();
// InternalError before is_there() said yes.
const Library& library();

// During its lifetime oneDNN's calls from this thread run on this thread only. Afterwards the number of OpenMP threads
// that the calling program has set is restored. No OpenMP thread is started.
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

// Columns of one slice. The number does not depend on the threads: sums may depend on it, but must not depend on the
// threads.
inline constexpr std::int64_t kSliceColumns = 128;

}  // namespace weft::onednn
