#pragma once

// Recorded calls of the quantizing ops: vLLM's functions have more arguments and results than one op, with other names,
// and store codes of four bits and scales of one byte as integers.

#include <optional>

#include "ir/value.h"
#include "tests/recorded_op.h"

namespace weft {

// As run_recorded; nothing for ops of other families.
std::optional<std::vector<Tensor>> run_recorded_quantization(const RecordedCall& recorded, Evaluator& home);

// The wanted results of such an op in a comparable form: a float64 result is rounded to the dtype of the others.
RecordedTensors comparable(const std::string& op, RecordedTensors wanted);

}  // namespace weft
