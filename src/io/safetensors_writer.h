#pragma once

// Writes tensors as a safetensors file. The same tensors always give the same bytes: tensors of wider elements first
// (so that each lies aligned), then by name.

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

// UserError when two tensors have one name, a name is empty, not UTF-8, holds control characters or is __metadata__, or
// a dtype has no name in such files.
std::vector<std::byte> encode_safetensors(std::span<const NamedTensor> tensors,
                                          const std::map<std::string, std::string>& metadata = {});

// The same to a file, which appears complete or not at all. Errors of base/files.h as well.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace weft
