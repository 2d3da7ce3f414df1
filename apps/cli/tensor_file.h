#pragma once

// Safetensors files hold the arguments of an op or a graph, and the results. A type that the format does not have is
// stored as bytes (u8), with the type in the file's metadata: block-quantized weights {"w": "q4_1[1536, 576]"}, KV
// pages {"kv": "kv[f16, block=16, heads=3, head_dim=64]"}. A batch `b` is three i32 tensors: b.query_starts, b.lengths,
// b.block_table.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "io/safetensors.h"
#include "tensor/tensor.h"

namespace weft {

class TensorFile {
 public:
  // Throws UserError if the file is not a safetensors file.
  explicit TensorFile(const std::string& path);

  // Returns the tensor, KV pages or batch of a name, or nothing if there is none. Throws UserError if bytes and type
  // disagree. The tensor has its own memory, which kernels may overwrite.
  std::optional<Tensor> find(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  const StoredTensor* entry(const std::string& name) const;
  Tensor plain(const StoredTensor& entry) const;
  Tensor typed(const StoredTensor& entry, const std::string& type) const;
  std::optional<Tensor> batch(const std::string& name) const;

  MappedFile file_;
  Safetensors header_;
};

// Throws UserError unless the batch has `rows` rows and refers only to pages of `kv`.
void check_batch(const Tensor& batch, const Tensor& kv, std::int64_t rows);

// Writes results under their names. A type that the format does not have goes into the metadata.
void write_results(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& results);

}  // namespace weft
