#pragma once

// Finds tensors of a checkpoint that no weight of the model reads. Such a tensor may belong to a computation that this
// program does not have (a bias, a norm, a layer), so the checkpoint is refused with the tensor's name. A table in
// unread_tensors.cpp lists the tensors that are known to be harmless, with the reasons.

#include <string>
#include <vector>

#include "models/model.h"

namespace weft {

struct UnreadTensors {
  std::vector<std::string> names;  // tensors that may matter, in the order of the checkpoint
  // The harmless tensors: one sentence for each reason, with the first name and the number of tensors.
  std::vector<std::string> harmless;
  std::vector<std::string> said;  // the same, for tensors that could be of a larger model than the config's
};

UnreadTensors unread_tensors(const Checkpoint& checkpoint, const ModelDefinition& model, const ModelConfig& config);

// When `names` is not empty: throws a UserError with the first names and the number of tensors, or with
// --ignore-unread-tensors (`is_ignored`) returns the same text as one warning. Else returns "".
std::string check_unread_tensors(const std::vector<std::string>& names, const std::string& path, bool is_ignored);

}  // namespace weft
