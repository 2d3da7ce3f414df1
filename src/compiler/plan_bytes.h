#pragma once

// The Plans of a graph as bytes, and the functions that they call. Code is not among the bytes: a function names its
// object by the hash of its content, and where the objects lie is for those to say who keep them.

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/content_hash.h"
#include "compiler/generated_kernels.h"
#include "ir/graph.h"
#include "runtime/plan.h"

namespace weft {

// Object files of the host and images of a device, each once, by the hash of its content.
using CodeObjects = std::map<ContentHash, std::vector<std::byte>>;

struct PlanBytes {
  std::vector<std::byte> bytes;
  CodeObjects objects;  // that the functions name
};

// Names of the generated functions that the Plans call.
std::set<std::string> functions_of(std::span<const Plan* const> plans, const GeneratedKernels& generated);

// `by_range` may have a Plan several times, which is kept once. No name of the graph, its values or its weights is in
// the bytes.
PlanBytes bytes_of_plans(std::span<const Plan* const> by_range, const GeneratedKernels& generated);

// By range, with the names of `traced`; their functions are the Context's from then on. An Error of any kind where the
// bytes are not what bytes_of_plans gave of a graph that is this one but for its names, or an object is not there.
std::vector<std::shared_ptr<const Plan>> plans_of_bytes(std::span<const std::byte> bytes, const CodeObjects& objects,
                                                        const Graph& traced, const Context& context);

// The objects that the functions name; nothing is loaded. UserError where the bytes hold no functions.
std::set<ContentHash> objects_named(std::span<const std::byte> bytes);

// Bytes and objects in one, and apart again. UserError for what joined() did not give.
std::vector<std::byte> joined(const PlanBytes& plans);
PlanBytes parted(std::span<const std::byte> bytes);

}  // namespace weft
