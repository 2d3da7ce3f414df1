#include "compiler/context.h"

#include "base/error.h"

namespace weft {

const Kernel& Context::kernel_for(const std::string& op, const std::string& provider) const {
  const Kernel* kernel = kernels.find(op, provider == "native" ? "reference" : provider);
  CHECK(kernel != nullptr, "there is no kernel {}@{}", op, provider);
  return *kernel;
}

}  // namespace weft
