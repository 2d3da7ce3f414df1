#include "runtime/stable_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/batch.h"

namespace weft {
namespace {

std::int64_t bytes_of_batch(std::int64_t sequences, std::int64_t max_blocks) {
  const std::int64_t entries = (sequences + 1) + sequences + sequences * max_blocks;
  return static_cast<std::int64_t>(sizeof(Batch) + static_cast<std::size_t>(entries) * sizeof(std::int32_t));
}

void copy_batch(const Batch& from, std::byte* to) {
  Batch& batch = *new (to) Batch(from);
  auto* arrays = reinterpret_cast<std::int32_t*>(to + sizeof(Batch));
  const auto append = [&arrays](const std::int32_t* values, std::int64_t count) {
    const std::int32_t* const begin = arrays;
    arrays = std::copy_n(values, count, arrays);
    return begin;
  };
  batch.query_starts = append(from.query_starts, from.sequences + 1);
  batch.lengths = append(from.lengths, from.sequences);
  batch.block_table = append(from.block_table, std::int64_t{from.sequences} * from.max_blocks);
}

}  // namespace

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
    place.storage = device == nullptr ? Storage::allocate(bytes) : device->allocate_host(bytes);
  }
}

Tensor StableInputs::place(std::size_t index, const Tensor& tensor) const {
  const Place& place = places_.at(index);
  if (place.storage == nullptr) return tensor;
  const std::int64_t bytes = place.is_batch ? bytes_of_batch(batch_of(tensor).sequences, batch_of(tensor).max_blocks)
                                            : tensor.meta.bytes().number();
  CHECK(bytes <= place.storage->bytes(), "an input of {} bytes has a place for {}", bytes, place.storage->bytes());
  if (place.is_batch) {
    copy_batch(batch_of(tensor), place.storage->data());
  } else if (bytes > 0) {
    std::memcpy(place.storage->data(), tensor.data(), static_cast<std::size_t>(bytes));
  }
  return {.meta = tensor.meta, .storage = place.storage};
}

std::int64_t StableInputs::bytes() const {
  std::int64_t bytes = 0;
  for (const Place& place : places_) bytes += place.storage == nullptr ? 0 : place.storage->bytes();
  return bytes;
}

}  // namespace weft
