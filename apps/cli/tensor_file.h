#pragma once

// Safetensors files as arguments of an op or a graph, and as their results. What such files have no dtype for stands in
// them as bytes (u8), with its type in the file's metadata: block-quantized weights {"w": "q4_1[1536, 576]"}, KV pages
// {"kv": "kv[f16, block=16, heads=3, head_dim=64]"}. A batch `b` is three i32 tensors: b.query_starts, b.lengths,
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
  // UserError when it is no such file.
  explicit TensorFile(const std::string& path);

  // The tensor, KV pages or batch of a name; nothing when there is none. UserError when bytes and type disagree. The
  // memory is the tensor's own: kernels may write over it.
  std::optional<Tensor> find(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  const SafetensorsTensor* entry(const std::string& name) const;
  Tensor plain(const SafetensorsTensor& entry) const;
  Tensor typed(const SafetensorsTensor& entry, const std::string& type) const;
  std::optional<Tensor> batch(const std::string& name) const;

  MappedFile file_;
  Safetensors header_;
};

// UserError unless the batch has `rows` rows and names pages that `kv` has.
void check_batch(const Tensor& batch, const Tensor& kv, std::int64_t rows);

// Writes results under their names; a type that the format lacks goes into the metadata.
void write_results(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& results);

}  // namespace weft
