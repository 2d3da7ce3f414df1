#pragma once

// Compares this program's results for a recorded call with the record.

#include <vector>

#include <nlohmann/json.hpp>

#include "tests/recorded_op.h"

namespace weft {

// The failure of a case: nothing, or the first difference in words and the number of elements that differ too much.
struct RecordedProblem {
  std::string text;
  std::int64_t elements = 0;
};

// `entry` is the case in its manifest, `reasons` the manifest's reasons for tolerances. Strides are compared with the
// record if the record has scales. Throws NotKnownYet for an unknown kind of tolerance.
RecordedProblem recorded_difference(const RecordedTensors& wanted, const std::vector<Tensor>& came,
                                    const nlohmann::ordered_json& entry, const nlohmann::ordered_json& reasons);

}  // namespace weft
