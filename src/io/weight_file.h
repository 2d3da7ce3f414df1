#pragma once

// A mapped file of weights and the tensors in it.

#include <cstdint>
#include <memory>
#include <vector>

#include "io/model_files.h"
#include "tensor/tensor.h"

namespace weft {

struct WeightFile : ModelFile {
  std::shared_ptr<Storage> storage;  // a view of the bytes

  std::size_t offset() const { return static_cast<std::size_t>(bytes.data() - map->bytes().data()); }
};

WeightFile weight_file(ModelFile mapped);

// Returns a view of the file, or a copy if the address in the file is not aligned for the elements. `offset` and
// `bytes` are those of the tensor in the file.
Tensor tensor_in(const WeightFile& file, DType dtype, const std::vector<std::int64_t>& shape, std::int64_t offset,
                 std::int64_t bytes);

}  // namespace weft
