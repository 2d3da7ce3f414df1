#include "kernels/provider.h"

#include "base/error.h"
#include "base/shared_library.h"
#include "kernels/openblas/library.h"

namespace weft::openblas {
namespace {

struct Opened {
  Library library;
  std::string problem;
};

Opened open() {
  Opened opened;
  const char* name = "libopenblas.so.0";
  const auto shared = SharedLibrary::open(name, opened.problem);
  if (!shared) return opened;
  const auto find = [&](auto*& function, const char* symbol) { shared->find(symbol, function, opened.problem); };
  find(opened.library.sgemm, "cblas_sgemm");
  find(opened.library.sgemv, "cblas_sgemv");
  find(opened.library.get_config, "openblas_get_config");
  decltype(&openblas_get_parallel) get_parallel = nullptr;
  decltype(&openblas_set_num_threads) set_num_threads = nullptr;
  find(get_parallel, "openblas_get_parallel");
  find(set_num_threads, "openblas_set_num_threads");
  if (!opened.problem.empty()) return opened;
  if (get_parallel() != OPENBLAS_THREAD) {
    opened.problem = "the OpenBLAS of this system is not its pthread flavour (Debian's libopenblas0-pthread)";
    return opened;
  }
  // The library starts a thread for each processor when it is loaded. The function that stops them is in no header.
  set_num_threads(1);
  if (auto* stop = shared->find<int()>("blas_thread_shutdown_")) stop();
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
  CHECK(opened().problem.empty(), "OpenBLAS is called, but {}", opened().problem);
  return opened().library;
}

}  // namespace weft::openblas

// The version is the second word of "OpenBLAS 0.3.21 DYNAMIC_ARCH ...".
PROVIDER(openblas) {
  if (const Verdict there = openblas::is_there(); !there) return there.reason();
  const std::string configuration = openblas::library().get_config();
  const std::size_t first = configuration.find(' ') + 1;
  return configuration.substr(first, configuration.find(' ', first) - first);
}
