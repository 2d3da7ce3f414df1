#pragma once

// Parses a safetensors file that is in memory and returns the locations of its tensors. It does not access the tensors'
// bytes.
//
// Before parse() returns, it checks the whole header: its length, the JSON (no repeated and no unknown key), dtypes,
// shapes, and that the tensors fill the rest of the file without gap or overlap. Each error is a UserError that begins
// with [where].
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

#include "io/stored_tensor.h"
#include "tensor/dtype.h"

namespace weft {

struct Safetensors {
  std::vector<StoredTensor> tensors;            // in the order of their bytes
  std::map<std::string, std::string> metadata;  // from the header's __metadata__

  // `where` names the file in messages.
  static Safetensors parse(std::span<const std::byte> file, const std::string& where);
};

// Converts between a dtype and its name in such files: "BF16" for bf16. The name is "" if the format has no such dtype.
std::string_view safetensors_dtype_name(DType dtype);
std::optional<DType> dtype_from_safetensors(std::string_view name);

// Parses model.safetensors.index.json, the index of a checkpoint in several files, and returns the file of each tensor.
// UserError that begins with [where] unless `text` is an object whose weight_map maps unique names to plain names of
// files in the same folder.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& where);

// Whether the text of an index is readable and names no other file, as that which mlx-lm writes next to its one file.
bool names_only(std::string_view index, const std::string& file);

}  // namespace weft
