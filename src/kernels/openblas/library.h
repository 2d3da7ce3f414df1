#pragma once

// OpenBLAS is not linked. It is opened when a call first asks whether it is supported. Opening takes 2 ms and starts
// threads, so only users who name it in a priority list pay for it.
//
// Each call runs on one thread of our own pool, for one slice of columns. Only the pthread flavour of the library is
// safe for that. The serial one uses its buffers without a lock, so two calls at once compute wrong sums. The OpenMP
// one reads the number of threads again for each thread that calls it.

#include <cblas.h>

#include "kernels/kernel.h"

namespace weft::openblas {

struct Library {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_sgemv) sgemv = nullptr;
  decltype(&openblas_get_config) get_config = nullptr;
};

// Opens the library at the first call. Returns no, with the reason, if this system does not have it or has another
// flavour.
Verdict is_there();
// InternalError before is_there() said yes.
const Library& library();

}  // namespace weft::openblas
