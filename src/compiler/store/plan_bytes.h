#pragma once

// Serializes the Plans of a graph and the functions that they call. The bytes contain no machine code: a function names
// its object by the hash of its content, and the caller decides where objects are stored.

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/content_hash.h"
#include "compiler/functions/generated_kernels.h"
#include "ir/graph.h"
#include "runtime/plan.h"

namespace weft {

// Object files for the host and images for a device, each once, by the hash of its content.
using CodeObjects = std::map<ContentHash, std::vector<std::byte>>;

struct PlanBytes {
  std::vector<std::byte> bytes;
  CodeObjects objects;  // the objects that the functions name
};

// Names of the generated functions that the Plans call.
std::set<std::string> functions_of(std::span<const Plan* const> plans, const GeneratedKernels& generated);

// `by_range` may have the same Plan several times; it is stored once. The bytes contain no name of the graph, its
// values or its weights.
PlanBytes bytes_of_plans(std::span<const Plan* const> by_range, const GeneratedKernels& generated);

// The Plans by range, with the names of `traced`; their functions are added to the Context. Throws an Error of any kind
// where bytes_of_plans did not make the bytes from this graph (names aside), or where an object is missing.
std::vector<std::shared_ptr<const Plan>> plans_of_bytes(std::span<const std::byte> bytes, const CodeObjects& objects,
                                                        const Graph& traced, const Context& context);

// The hashes of the objects that the functions name; nothing is loaded. UserError where the bytes have no functions.
std::set<ContentHash> objects_named(std::span<const std::byte> bytes);

// Joins bytes and objects into one byte string, and separates them again. UserError for bytes that joined() did not
// make.
std::vector<std::byte> joined(const PlanBytes& plans);
PlanBytes parted(std::span<const std::byte> bytes);

}  // namespace weft
