#pragma once

// Tensors of a checkpoint that no weight of the model reads. Each may be a part of the computation that this program
// does not have (a bias, a norm, a layer), so it is refused by its name; which are known to take no part, and why, is
// one table in unread_tensors.cpp.

#include <string>
#include <vector>

#include "models/model.h"

namespace weft {

struct UnreadTensors {
  std::vector<std::string> names;  // those that may matter, in the order of the checkpoint
  // Those that take no part: one sentence for each reason, with the first name and how many there are.
  std::vector<std::string> harmless;
};

UnreadTensors unread_tensors(const Checkpoint& checkpoint, const ModelDefinition& model, const ModelConfig& config);

// UserError with the first names and how many there are, unless --ignore-unread-tensors was given: then the same as one
// warning. Else "".
std::string check_unread_tensors(const std::vector<std::string>& names, const std::string& path, bool is_ignored);

}  // namespace weft
