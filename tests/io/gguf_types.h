#pragma once

#include <cstdint>
#include <optional>

#include "io/gguf_header.h"

namespace weft::testing {

// ggml's number of the type; nullopt for types that GGUF files do not have.
inline std::optional<std::uint32_t> ggml_id(DType dtype) {
  for (std::uint32_t id = 0; id < 64; ++id)
    if (dtype_from_ggml(id) == dtype) return id;
  return std::nullopt;
}

}  // namespace weft::testing
