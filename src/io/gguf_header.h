#pragma once

// Building blocks of gguf.cpp: a cursor that cannot leave the file, and the ids of ggml's tensor types.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "io/gguf.h"

namespace weft {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they are stored");

// Bytes of one stored number; 0 for text and array, whose elements have no fixed size.
std::int64_t gguf_number_bytes(GgufType type);

template <class T>
T gguf_number(std::span<const std::byte> data, std::uint64_t index = 0) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Reads the file from its start. Each read is checked against the remaining bytes; the UserError names the file and the
// item that was being read.
class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t left() const { return file_.size() - offset_; }
  const std::string& where() const { return where_; }

  // Sets the name of the item that is read next, for messages.
  void reading(std::string what) { what_ = std::move(what); }

  std::span<const std::byte> take(std::uint64_t bytes);
  template <class T>
  T number() {
    return gguf_number<T>(take(sizeof(T)));
  }
  // A string: an 8-byte length, followed by the bytes.
  std::string_view text();
  // A key or the name of a tensor: 1 to `limit` printable ASCII characters.
  std::string_view name(std::uint64_t limit);
  // A count of items that take at least `least_bytes` each.
  std::uint64_t count(std::uint64_t least_bytes);
  GgufType type();

 private:
  std::span<const std::byte> file_;
  const std::string& where_;
  std::uint64_t offset_ = 0;
  std::string what_ = "the header";
};

// The name of ggml's tensor type with this id ("" for an unknown id), and Weft's type for it, if there is one.
std::string_view ggml_type_name(std::uint32_t id);
std::optional<DType> dtype_from_ggml(std::uint32_t id);
// "f32, f16, ..." in the order of ids.
std::string supported_ggml_types();

}  // namespace weft
