#pragma once

// A call that was recorded elsewhere (tests/data/ops), and this program's results for it.

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "ir/op.h"
#include "kernels/kernel.h"

namespace weft {

// In the order of the record.
using RecordedTensors = std::vector<std::pair<std::string, Tensor>>;

// The row range for which kernels are chosen and Plans are made.
inline constexpr TokenRange kRecordedRange = {1, 8192};

// Thrown for an op, a format or a kind of table that is not in this program.
struct NotKnownYet {};

struct RecordedCall {
  std::string op;
  std::string name;  // of the case; `round.bfloat16` for a conversion
  RecordedTensors inputs;
  RecordedTensors wanted;
  nlohmann::ordered_json attributes;
};

// The results as `home` computes them, in the order of the wanted ones, possibly followed by more. Throws NotKnownYet,
// or the op's error.
std::vector<Tensor> run_recorded(const RecordedCall& recorded, Evaluator& home);

// By torch's name: `bfloat16`, and with the case of a conversion before it `round.bfloat16`. NotKnownYet.
DType dtype_of_torch(std::string_view name);
DType format_of_torch(std::string_view name);

}  // namespace weft
