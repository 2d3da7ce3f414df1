#pragma once

// OpenBLAS, opened when a call first asks whether it is supported, not linked: it takes 2 ms and starts threads, which
// only those pay who name it in a priority list.
//
// Each call is on one thread, for one slice of columns, from our own pool. Of the library's flavours only the pthread
// one is safe so: the serial one hands out its buffers without a lock (two calls at once give wrong sums), and the
// OpenMP one takes the count of threads anew from each thread that calls it.

#include <cblas.h>

#include "kernels/kernel.h"

namespace weft::openblas {

struct Library {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_sgemv) sgemv = nullptr;
  decltype(&openblas_get_config) get_config = nullptr;
};

// Opens the library the first time; no, with the reason, when this system lacks it or has another flavour.
Verdict is_there();
// InternalError before is_there() said yes.
const Library& library();

}  // namespace weft::openblas
