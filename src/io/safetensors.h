#pragma once

// Reads a safetensors file that lies in memory: where its tensors are. The tensors' bytes are not touched.
//
// The whole header is checked before parse() returns: its length, the JSON (no key twice, none unknown), dtypes,
// shapes, and that the tensors fill the rest of the file without a gap or overlap. Whatever is wrong is a UserError
// that begins with [where].
//
// Layout: https://github.com/huggingface/safetensors#format

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace weft {

struct SafetensorsTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // row-major; dims may be 0
  std::int64_t offset = 0;          // in bytes, from the start of the file
  std::int64_t bytes = 0;
};

struct Safetensors {
  std::vector<SafetensorsTensor> tensors;       // in the order of their bytes
  std::map<std::string, std::string> metadata;  // of the header's __metadata__

  // `where` names the file in messages.
  static Safetensors parse(std::span<const std::byte> file, const std::string& where);
};

// The name of a dtype in such files, "BF16" for bf16; "" when the format has none. And the way back.
std::string_view safetensors_dtype_name(DType dtype);
std::optional<DType> dtype_from_safetensors(std::string_view name);

// The index of a checkpoint in several files, model.safetensors.index.json: which file holds which tensor. UserError
// that begins with [where] unless `text` is an object whose weight_map maps names, none twice, to plain names of files
// in the same folder.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& where);

}  // namespace weft
