#pragma once

// The byte format of a Plan that the writer and the reader share: the mark and the version; four tables of repeated
// values (strings, dims, types, kernels), in order of their first use; then the Plan, which refers to table entries by
// index. Dims and types are stored as text, so that the parsers check them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "tensor/attribute.h"
#include "tensor/dim_parser.h"
#include "tensor/meta_parser.h"

namespace weft {

inline constexpr std::string_view kPlanFileMark = "weftplan";

// The nesting depth of lists that the parser of attributes allows, and more attributes than any op has.
inline constexpr int kMostListDepth = 32;
inline constexpr std::size_t kMostAttributes = 256;

enum class AttributeTag : std::uint8_t { none, boolean, dim, real, string, dtype, word, list };
static_assert(std::variant_size_v<Attribute::Storage> == 8);

// The dim of a table entry. UserError when the text does not parse, or differs from what text() writes: another
// spelling could encode a value much larger than its length.
inline Dim dim_of_entry(const std::string& text) {
  Dim dim = parse_dim(text);
  USER_CHECK(dim.text() == text, "the dim {} is spelled '{}'", dim.text(), text);
  return dim;
}

inline Meta type_of_entry(const std::string& text, const std::string& device) {
  Meta meta = parse_meta(text);
  meta.device = device_from_text(device);
  USER_CHECK(meta.text() == text && device_text(meta.device) == device, "the type {} on {} is spelled '{}' on '{}'",
             meta.text(), device_text(meta.device), text, device);
  return meta;
}

}  // namespace weft
