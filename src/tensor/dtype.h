#pragma once

// Element types. `dtype.def` is the only list; all code here is derived from it.

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class DType : std::uint8_t {
#define WEFT_DTYPE(name, text, kind, block_elements, block_bytes) name,
#include "tensor/dtype.def"
#undef WEFT_DTYPE
};

inline constexpr int kDTypeCount = 0
#define WEFT_DTYPE(name, text, kind, block_elements, block_bytes) +1
#include "tensor/dtype.def"
#undef WEFT_DTYPE
    ;

enum class DTypeKind : std::uint8_t { floating, integer, boolean, block };

struct DTypeInfo {
  std::string_view text;  // as graphs spell it
  DTypeKind kind;
  std::int64_t block_elements;  // elements stored together; 1 for plain types
  std::int64_t block_bytes;     // bytes of one such block
};

const DTypeInfo& dtype_info(DType dtype);
std::string_view dtype_text(DType dtype);
std::optional<DType> dtype_from_text(std::string_view text);

inline bool is_block(DType dtype) { return dtype_info(dtype).kind == DTypeKind::block; }
// Whether each element has an address. Elements of packed 4-bit types share bytes, those of blocks share a scale.
inline bool has_addresses(DType dtype) { return dtype_info(dtype).block_elements == 1; }
inline bool is_floating(DType dtype) { return dtype_info(dtype).kind == DTypeKind::floating; }

// Bytes of `elements` consecutive elements. Throws UserError if they do not fill whole blocks or overflow 64 bits.
std::int64_t bytes_of(DType dtype, std::int64_t elements);

}  // namespace weft
