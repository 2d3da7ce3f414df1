#pragma once

// A Context whose device is fake: kernels of provider cuda run in the emulator, all others on the host.

#include <memory>

#include "compiler/context.h"
#include "kernels/cuda/lib/mathematics.h"

namespace weft {

std::shared_ptr<Context> cuda_context();

// Ops that the provider has a kernel for; and providers of CUDA kernels, in sorted order.
std::vector<std::string> ops_of_provider(const Context& context, const std::string& provider);
std::vector<std::string> cuda_providers(const Context& context);

// Who offers the op's kernel with these mathematics, or its only form.
std::string provider_of_form(const Context& context, const std::string& op, cuda::Mathematics mathematics);

// The op's meaning, interpreted; whether a provider's kernel supports the call; and the kernel's result. Throws
// UserError with the reason if it does not support the call. Without a provider: the one with reference math, or the
// only form. Optional operands at the end may be missing.
std::vector<Tensor> meaning_of(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                               const Attributes& attributes);
Verdict supports_of_cuda(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                         const Attributes& attributes, const std::string& provider = "");
std::vector<Tensor> by_cuda(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                            const Attributes& attributes, const std::string& provider = "");

// The same numbers at an offset of this number of bytes, or of one element, from an address where every vector is
// aligned.
Tensor moved_by(const Tensor& tensor, std::int64_t bytes);

// The difference of all results, exact except for the sign and payload of NaN; "" if there is none.
std::string difference_of_results(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came);

}  // namespace weft
