#pragma once

// A Plan as bytes, so that it can be kept on disk and replayed without the compiler.
//
// Everything in the Plan is kept; of a kernel only its op and provider, since its code is the program's own, or stands
// beside the Plan where it was generated. Equal Plans give equal bytes, on every machine.
//
// A stored Plan is right only where all that went into it is what it was. Besides the graph, the options, the versions
// of compiler and kernels, and measurements that were taken, these are facts of the machine, of DeviceDescription:
//   threads    kernels ask for scratch for each of them, generated functions too: with more threads they would write
//              beyond it, with fewer the arena is larger than it need be
//   features   which kernels were chosen, how much scratch their variants want, how weights are packed
//   fp8        the dtype of 8-bit floats
//   name, host what tuning databases and plugins are told besides
// So they belong into the key under which the bytes are found; neither the bytes nor the reader know them.
//
// The reader believes nothing: bytes that were cut off or changed give an error, or a Plan whose every slot, version,
// symbol and type is well-formed, and never take more memory than a small multiple of their length. Whether the Plan
// makes sense is verify_plan's question, and whether it is the one that was written is for a hash beside the bytes to
// say: a Plan, like a program, can be harmful without being malformed.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/plan.h"

namespace weft {

// To be raised when plan_bytes gives other bytes than before, or a field of the Plan another meaning.
inline constexpr std::uint32_t kPlanFileVersion = 3;

// The bytes are no Plan, one of another version, or one that wants a kernel that is not here.
class PlanFileError : public UserError {
 public:
  using UserError::UserError;
};

// Null for a kernel that is not here. A generated function is a kernel of the provider `native` whose op is the
// function's name.
using KernelLookup = std::function<const Kernel*(const std::string& op, const std::string& provider)>;

// InternalError when a step has no kernel, or a type or dim is not what its text says.
std::vector<std::byte> plan_bytes(const Plan& plan);

// PlanFileError. `find_kernel` is asked once for each kernel, and what it gives must outlive the Plan; a UserError of
// its own becomes a PlanFileError, others pass.
Plan plan_from_bytes(std::span<const std::byte> bytes, const KernelLookup& find_kernel);

}  // namespace weft
