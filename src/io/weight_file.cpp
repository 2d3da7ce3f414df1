#include "io/weight_file.h"

#include <cstring>
#include <utility>

namespace weft {

WeightFile weight_file(ModelFile mapped) {
  // The type Storage allows writes, but by their contract, tensors of a checkpoint are never written.
  auto* bytes = const_cast<std::byte*>(mapped.bytes.data());
  const auto size = static_cast<std::int64_t>(mapped.bytes.size());
  auto storage = Storage::view_of(bytes, size, mapped.map);
  return {std::move(mapped), std::move(storage)};
}

Tensor tensor_in(const WeightFile& file, DType dtype, const std::vector<std::int64_t>& shape, std::int64_t offset,
                 std::int64_t bytes) {
  Tensor tensor;
  tensor.meta = Meta::tensor(dtype, Shape(shape.begin(), shape.end()));
  tensor.storage = file.storage;
  tensor.byte_offset = offset;
  // A block begins with a half float, so it needs an alignment of 2. Words of u32 are codes, of mlx-lm, whose files
  // have tensors at any address, and are copied where they are read (io/grouped_weight.h).
  const std::int64_t alignment = is_block(dtype) ? 2 : dtype == DType::u32 ? 1 : dtype_info(dtype).block_bytes;
  if (bytes > 0 && offset % alignment != 0) {
    tensor.storage = Storage::allocate(bytes);
    tensor.byte_offset = 0;
    std::memcpy(tensor.data(), file.bytes.data() + offset, static_cast<std::size_t>(bytes));
  }
  return tensor;
}

}  // namespace weft
