#pragma once

// Writes tensors as a safetensors file. The same tensors always give the same bytes. Tensors are ordered by decreasing
// element size, which keeps each one aligned, then by name.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

struct NamedTensor {
  std::string name;
  Tensor tensor;  // strided ones are written contiguously
};

// UserError if two tensors have the same name, if a name is empty, not UTF-8, has control characters or is
// __metadata__, or if the format has no name for a dtype.
std::vector<std::byte> encode_safetensors(std::span<const NamedTensor> tensors,
                                          const std::map<std::string, std::string>& metadata = {});

// The same, written to a file that appears complete or not at all. Also throws the errors of base/files.h.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace weft
