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

// What the op means, interpreted, whether its kernel of a provider takes the call, and what that gives. UserError where
// it does not support the call, with its reason. No provider: the one with house mathematics, or of the only form.
// Optional operands at the end may be left out.
std::vector<Tensor> meaning_of(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                               const Attributes& attributes);
Verdict supports_of_cuda(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                         const Attributes& attributes, const std::string& provider = "");
std::vector<Tensor> by_cuda(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                            const Attributes& attributes, const std::string& provider = "");

// The same numbers, so many bytes, or an element of more, behind a place where every vector begins.
Tensor moved_by(const Tensor& tensor, std::int64_t bytes);

// The difference of all results, exact but for the sign and payload of NaN; "" where there is none.
std::string difference_of_results(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came);

}  // namespace weft
