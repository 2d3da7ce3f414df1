#pragma once

// A Context whose device is fake: kernels of provider cuda run in the emulator, all others on the host.

#include <memory>

#include "compiler/context.h"

namespace weft {

std::shared_ptr<Context> cuda_context();

// Ops that the provider has a kernel for.
std::vector<std::string> ops_of_provider(const Context& context, const std::string& provider);

// What the op means, interpreted, whether its kernel of a provider takes the call, and what that gives. UserError where
// it does not support the call, with its reason.
std::vector<Tensor> meaning_of(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                               const Attributes& attributes);
Verdict supports_of_cuda(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                         const Attributes& attributes, const std::string& provider = "cuda");
std::vector<Tensor> by_cuda(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                            const Attributes& attributes, const std::string& provider = "cuda");

// The difference of all results, exact but for the sign and payload of NaN; "" where there is none.
std::string difference_of_results(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came);

}  // namespace weft
