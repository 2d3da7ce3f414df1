#include "codegen/row_inputs.h"

#include <algorithm>

#include "codegen/row_shape.h"
#include "ir/alias.h"

namespace weft {

int RowInputs::buffer_of(const GraphValue& from, RowDomain domain, const RowBuffer& buffer) {
  const auto known = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) {
    return input.from == &from && input.domain == domain && input.buffer == buffer;
  });
  if (known != inputs_.end()) return static_cast<int>(known - inputs_.begin());
  if (region_.program.buffers.size() == kMostRowBuffers) refuse("reads more than {} tensors", kMostRowBuffers);
  region_.program.buffers.push_back(buffer);
  region_.inputs.push_back(&from);
  inputs_.push_back({&from, domain, buffer, -1});
  return static_cast<int>(inputs_.size()) - 1;
}

int RowInputs::load(const GraphValue& from, RowDomain domain, const RowBuffer& buffer) {
  const int index = buffer_of(from, domain, buffer);
  int& value = inputs_[static_cast<std::size_t>(index)].value;
  if (value < 0) value = region_.program.add({.op = RowOp::load, .domain = domain, .buffer = index});
  return value;
}

void RowInputs::find_neighbours() {
  const auto is_interleaved_with = [](const Input& second, const Input& first) {
    return dtype_info(first.buffer.dtype).block_bytes == 2 && first.buffer == second.buffer &&
           first.buffer.placement.stride == 2 && first.buffer.numbers < 0 &&
           storage_root(first.from) == storage_root(second.from) &&
           storage_offset(second.from) == storage_offset(first.from) + 1;
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      if (is_interleaved_with(inputs_[k], inputs_[i]))
        region_.program.buffers[k].interleaved_with = static_cast<int>(i);
}

}  // namespace weft
