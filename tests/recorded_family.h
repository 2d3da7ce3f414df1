#pragma once

// The calls of one family of recorded vectors: FAMILY.manifest.json and FAMILY.safetensors of a folder
// (tests/data/ops/README.md).

#include <map>

#include "base/files.h"
#include "io/safetensors.h"
#include "tests/recorded_difference.h"
#include "tests/recorded_op.h"

namespace weft {

class RecordedFamily {
 public:
  RecordedFamily(const std::string& folder, const std::string& name);

  const nlohmann::ordered_json& cases() const { return manifest_.at("cases"); }
  // NotKnownYet for a dtype that is not in this program.
  RecordedCall call_of(const nlohmann::ordered_json& entry) const;
  // The failure of a case of that call.
  RecordedProblem problem_of(const nlohmann::ordered_json& entry, const RecordedCall& call,
                             const std::vector<Tensor>& came) const;

 private:
  RecordedTensors tensors(const std::string& name, const char* side, const nlohmann::ordered_json& described) const;

  MappedFile file_;
  nlohmann::ordered_json manifest_;
  std::map<std::string, StoredTensor> stored_;
};

// The number of elements of each case that are known to differ: a file of lines FAMILY CASE ELEMENTS, with comments
// after `#`. Throws UserError; empty if there is no path.
using KnownDifferences = std::map<std::string, std::map<std::string, std::int64_t>>;
KnownDifferences read_known_differences(const std::string& path);

}  // namespace weft
