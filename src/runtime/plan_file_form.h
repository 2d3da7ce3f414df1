#pragma once

// The form of a Plan in bytes, as far as both its writer and its reader must know it: the mark and the version; four
// tables of what is said often (strings, dims, types, kernels), in order of their first use; then the Plan, which means
// their entries by number. Dims and types are kept as their texts, so that the parsers' checks hold for them.

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

// As deep as the parser of attributes lets lists nest, and more attributes than any op has.
inline constexpr int kMostListDepth = 32;
inline constexpr std::size_t kMostAttributes = 256;

enum class AttributeTag : std::uint8_t { none, boolean, dim, real, string, dtype, word, list };
static_assert(std::variant_size_v<Attribute::Storage> == 8);

// What an entry of a table of texts says. UserError when nothing, or when it is spelled otherwise than text() does:
// then it could stand for much more than its length.
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
