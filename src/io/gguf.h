#pragma once

// Parses a GGUF file (versions 2 and 3, little endian) that is in memory: its key-value pairs and the locations of its
// tensors. Only small numbers are copied: each string and array is a view of the given bytes, which must outlive the
// Gguf.
//
// Before parse() returns, it checks the whole header: each count and length against the available bytes, keys and names
// (printable and unique), types, shapes, and that each tensor is aligned, is inside the file and overlaps no other.
// Each error is a UserError that begins with [where].
//
// Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace weft {

// Type ids of values, as stored.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  text = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

std::string_view gguf_type_text(GgufType type);

struct GgufValue {
  GgufType type = GgufType::u8;     // of the value or, for an array, of its elements
  bool is_array = false;            // arrays of arrays do not occur
  std::uint64_t count = 1;          // elements
  std::span<const std::byte> data;  // as stored: numbers packed, each string as an 8-byte length and its bytes

  // For messages: "u32", "array of 49152 text".
  std::string type_name() const;
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

struct GgufTensor {
  std::string_view name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // row-major: the last dim is the contiguous one, the first of the file's ne
  std::int64_t offset = 0;          // in bytes, from the start of the file
  std::int64_t bytes = 0;
};

class Gguf {
 public:
  // `where` names the file in messages.
  static Gguf parse(std::span<const std::byte> file, std::string where);
  // A model in several files: where(), version, alignment and metadata of the first part, and the tensors of all parts.
  // The offset of each tensor is in its own part. UserError if a tensor occurs twice.
  static Gguf of_parts(std::vector<Gguf> parts);

  const std::string& where() const { return where_; }
  std::uint32_t version() const { return version_; }
  std::int64_t alignment() const { return alignment_; }
  // Both in the order of the file, and tensors also in that of the parts.
  const std::vector<GgufEntry>& entries() const { return entries_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  // Null when there is none.
  const GgufTensor* find_tensor(std::string_view name) const;
  const GgufValue* find(std::string_view key) const;

  // The value of a key; nullopt if the key is absent, UserError if the value has another kind. find_integer accepts
  // each integer type, and find_real accepts each number type. A real that is not finite is a UserError.
  std::optional<std::int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_real(std::string_view key) const;
  std::optional<bool> find_boolean(std::string_view key) const;
  std::optional<std::string_view> find_text(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> find_integers(std::string_view key) const;
  std::optional<std::vector<double>> find_reals(std::string_view key) const;
  std::optional<std::vector<std::string_view>> find_texts(std::string_view key) const;

  // The same, but an absent key is a UserError that names it.
  std::int64_t integer(std::string_view key) const;
  double real(std::string_view key) const;
  std::string_view text(std::string_view key) const;

 private:
  std::string where_;
  std::uint32_t version_ = 0;
  std::int64_t alignment_ = 32;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::vector<std::uint32_t> entries_by_key_;   // indices, sorted
  std::vector<std::uint32_t> tensors_by_name_;  // indices, sorted

  const GgufValue* find_kind(std::string_view key, bool is_array, std::string_view wanted) const;
};

}  // namespace weft
