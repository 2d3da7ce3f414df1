#pragma once

// Places that the inputs of a Plan are copied to before a run, so that they always lie where they lay when something
// was captured. A layer before replay, which copies nothing itself.

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
  // Takes memory for every input at the upper bounds of its symbols; for a batch, of `max_sequences` with `max_blocks`
  // pages each. For a device it is memory that the host shares with it, and nothing may be queued there that reads what
  // is put in another's place.
  StableInputs(const Plan& plan, std::int64_t max_sequences, std::int64_t max_blocks,
               cuda::StreamDevice* device = nullptr);

  // The same value in input `index`'s place, valid until the next one is put there. What is written over where it is
  // (donated inputs, KV pages) and params, which are bound once, come back themselves. InternalError for more than
  // there is memory for.
  const Tensor& place(std::size_t index, const Tensor& tensor);

  std::int64_t bytes() const;  // in all

 private:
  struct Place {
    Tensor tensor = {};  // undefined: it stays where it is
    bool is_batch = false;
  };
  std::vector<Place> places_;  // by input
};

}  // namespace weft
