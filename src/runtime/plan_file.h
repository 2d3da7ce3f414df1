#pragma once

// A Plan as bytes, so that it can be kept on disk and replayed without the compiler.
//
// The bytes hold the whole Plan. Of a kernel they hold only its op and provider: its code is part of the program or,
// if it was generated, is stored next to the Plan. Equal Plans give equal bytes, on every machine.
//
// A stored Plan is valid only where everything it was made from is unchanged. Besides the graph, the options, the
// versions of compiler and kernels, and the measurements that were taken, these are facts of the machine, fields of
// DeviceDescription:
//   threads    kernels, generated functions too, ask for scratch for each thread: with more threads they would write
//              beyond it, with fewer the arena is larger than necessary
//   features   they decide which kernels were chosen, how much scratch their variants need, how weights are packed
//   fp8        the dtype of 8-bit floats
//   name, host tuning databases and plugins receive these too
// The key under which the bytes are stored must contain them: neither the bytes nor the reader know them.
//
// The reader validates everything: truncated or changed bytes give an error, or a Plan whose every slot, version,
// symbol and type is well-formed. They never take more memory than a small multiple of their length. verify_plan checks
// whether the Plan makes sense. A hash that the caller stores next to the bytes must show whether they are the ones
// that were written: a Plan, like a program, can be harmful without being malformed.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/plan.h"

namespace weft {

// Raise it when plan_bytes gives other bytes for an equal Plan, or when a field of the Plan changes its meaning.
inline constexpr std::uint32_t kPlanFileVersion = 3;

// The bytes are not a Plan, have another version, or need a kernel that this program does not have.
class PlanFileError : public UserError {
 public:
  using UserError::UserError;
};

// Returns null for an unknown kernel. A generated function is a kernel of the provider `native` whose op is the
// function's name.
using KernelLookup = std::function<const Kernel*(const std::string& op, const std::string& provider)>;

// InternalError when a step has no kernel, or when the text of a type or dim does not parse to the same value.
std::vector<std::byte> plan_bytes(const Plan& plan);

// Throws PlanFileError. `find_kernel` is called once for each kernel, and its results must outlive the Plan. A
// UserError that it throws becomes a PlanFileError; other errors pass through.
Plan plan_from_bytes(std::span<const std::byte> bytes, const KernelLookup& find_kernel);

}  // namespace weft
