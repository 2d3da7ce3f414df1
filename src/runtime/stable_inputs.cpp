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
    Buffer& buffer = buffers_.emplace_back();
    if (planned.kind == SlotKind::param || planned.donated) continue;
    buffer.is_batch = planned.meta.kind == MetaKind::batch;
    if (!buffer.is_batch && !planned.meta.is_tensor()) continue;
    const std::int64_t most =
        buffer.is_batch ? bytes_of_batch(max_sequences, max_blocks) : planned.meta.bytes().range(plan.bounds).hi;
    CHECK(most < INT64_MAX, "[{}] input {} has no upper bound", plan.name, planned.name);
    const std::int64_t bytes = std::max<std::int64_t>(most, 1);
    buffer.tensor.storage = device == nullptr ? Storage::allocate(bytes) : device->allocate_host(bytes);
  }
}

const Tensor& StableInputs::place(std::size_t index, const Tensor& tensor) {
  Buffer& buffer = buffers_.at(index);
  if (!buffer.tensor.defined()) return tensor;
  const std::int64_t bytes = buffer.is_batch ? bytes_of_batch(batch_of(tensor).sequences, batch_of(tensor).max_blocks)
                                             : tensor.meta.bytes().number();
  CHECK(bytes <= buffer.tensor.storage->bytes(), "an input of {} bytes has a place for {}", bytes,
        buffer.tensor.storage->bytes());
  if (buffer.is_batch) {
    copy_batch(batch_of(tensor), buffer.tensor.data());
  } else if (bytes > 0) {
    std::memcpy(buffer.tensor.data(), tensor.data(), static_cast<std::size_t>(bytes));
  }
  buffer.tensor.meta = tensor.meta;  // reuses the memory of the old type
  return buffer.tensor;
}

std::int64_t StableInputs::bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.tensor.defined() ? buffer.tensor.storage->bytes() : 0;
  return bytes;
}

}  // namespace weft
