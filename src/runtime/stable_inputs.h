#pragma once

// Buffers that the inputs of a Plan are copied into before a run, so that their addresses are those of the capture.
// This layer is in front of Replay, which copies nothing itself.

#include <memory>
#include <vector>

#include "runtime/plan.h"
#include "tensor/tensor.h"

namespace weft {

namespace cuda {
class StreamDevice;
}

class StableInputs {
 public:
  // Allocates memory for every input at the upper bounds of its symbols; for a batch, for `max_sequences` with
  // `max_blocks` pages each. With `device` the memory is shared by host and device; place() may then be called only
  // when no queued work reads the input's buffer.
  StableInputs(const Plan& plan, std::int64_t max_sequences, std::int64_t max_blocks,
               cuda::StreamDevice* device = nullptr);

  // A copy of the tensor in the buffer of input `index`, valid until the next call for that input. Donated inputs and
  // KV pages, which are written in place, and params, which are bound once, are returned uncopied. InternalError for a
  // value larger than the buffer.
  const Tensor& place(std::size_t index, const Tensor& tensor);

  std::int64_t bytes() const;  // in all

 private:
  struct Buffer {
    Tensor tensor = {};  // undefined: the input is not copied
    bool is_batch = false;
  };
  std::vector<Buffer> buffers_;  // by input
};

}  // namespace weft
