#pragma once

// Converts between weft's own types and those of the flat interface (weft/weft_plugin.h).

#include <list>
#include <optional>
#include <string>
#include <vector>

#include <weft/weft_plugin.h>

#include "ir/op.h"
#include "kernels/kernel.h"

namespace weft {

std::int32_t flat_dtype(DType dtype);
// Returns nothing if the number is no dtype.
std::optional<DType> dtype_of_flat(std::int32_t dtype);

// The types of one request, with all text that they point to. It cannot be moved, because the flat types point into it.
class FlatTypes {
 public:
  FlatTypes() = default;
  FlatTypes(const FlatTypes&) = delete;
  FlatTypes& operator=(const FlatTypes&) = delete;

  void add(const Meta* meta);  // null: absent
  const weft_type* data() const { return types_.data(); }
  std::int32_t count() const { return static_cast<std::int32_t>(types_.size()); }

 private:
  const char* keep(std::string text);
  std::vector<weft_type> types_;
  std::list<std::string> texts_;
};

// The tensors of one call. It cannot be moved.
class FlatTensors {
 public:
  explicit FlatTensors(std::span<const TensorView> views);
  FlatTensors(const FlatTensors&) = delete;
  FlatTensors& operator=(const FlatTensors&) = delete;

  const weft_tensor* data() const { return tensors_.data(); }
  std::int32_t count() const { return static_cast<std::int32_t>(tensors_.size()); }

 private:
  std::vector<weft_tensor> tensors_;
  std::list<weft_batch> batches_;
};

}  // namespace weft
