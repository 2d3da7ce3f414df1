#pragma once

// What this program gave for a recorded call, held to the record.

#include <vector>

#include <nlohmann/json.hpp>

#include "tests/recorded_op.h"

namespace weft {

// What is wrong with a case: nothing, or the first difference in words and how many elements differ too much.
struct RecordedProblem {
  std::string text;
  std::int64_t elements = 0;
};

// `entry` is the case in its manifest, `reasons` the manifest's reasons for tolerances. Strides are held to the record
// where the record is of scales. NotKnownYet for a kind of tolerance that is not in this program.
RecordedProblem recorded_difference(const RecordedTensors& wanted, const std::vector<Tensor>& came,
                                    const nlohmann::ordered_json& entry, const nlohmann::ordered_json& reasons);

}  // namespace weft
