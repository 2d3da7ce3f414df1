#include "runtime/stable_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/batch.h"

namespace weft {

StableInputs::StableInputs(const Plan& plan, std::int64_t max_sequences, std::int64_t max_blocks,
                           cuda::StreamDevice* device) {
  for (const int slot : plan.inputs) {
    const PlanSlot& planned = plan.slots[static_cast<std::size_t>(slot)];
    Place& place = places_.emplace_back();
    if (planned.kind == SlotKind::param || planned.donated) continue;
    place.is_batch = planned.meta.kind == MetaKind::batch;
    if (!place.is_batch && !planned.meta.is_tensor()) continue;
    const std::int64_t most =
        place.is_batch ? bytes_of_batch(max_sequences, max_blocks) : planned.meta.bytes().range(plan.bounds).hi;
    CHECK(most < INT64_MAX, "[{}] input {} has no upper bound", plan.name, planned.name);
    const std::int64_t bytes = std::max<std::int64_t>(most, 1);
    place.tensor.storage = device == nullptr ? Storage::allocate(bytes) : device->allocate_host(bytes);
  }
}

const Tensor& StableInputs::place(std::size_t index, const Tensor& tensor) {
  Place& place = places_.at(index);
  if (!place.tensor.defined()) return tensor;
  const std::int64_t bytes = place.is_batch ? bytes_of_batch(batch_of(tensor).sequences, batch_of(tensor).max_blocks)
                                            : tensor.meta.bytes().number();
  CHECK(bytes <= place.tensor.storage->bytes(), "an input of {} bytes has a place for {}", bytes,
        place.tensor.storage->bytes());
  if (place.is_batch) {
    copy_batch(batch_of(tensor), place.tensor.data());
  } else if (bytes > 0) {
    std::memcpy(place.tensor.data(), tensor.data(), static_cast<std::size_t>(bytes));
  }
  place.tensor.meta = tensor.meta;  // reuses the memory of the old type
  return place.tensor;
}

std::int64_t StableInputs::bytes() const {
  std::int64_t bytes = 0;
  for (const Place& place : places_) bytes += place.tensor.defined() ? place.tensor.storage->bytes() : 0;
  return bytes;
}

}  // namespace weft
