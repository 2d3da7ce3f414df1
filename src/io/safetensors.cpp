#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/error.h"
#include "base/text.h"
#include "io/byte_order_mark.h"
#include "io/model_files.h"
#include "tensor/tensor_view.h"

namespace weft {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

// The limit of the reference implementation.
constexpr std::uint64_t kLongestHeader = 100'000'000;

// The shape of an F4 tensor counts elements, of which two share a byte, as in Weft's f4e2m1.
constexpr std::array<std::pair<std::string_view, DType>, 17> kDTypes = {{
    {"BF16", DType::bf16},
    {"BOOL", DType::boolean},
    {"F16", DType::f16},
    {"F32", DType::f32},
    {"F4", DType::f4e2m1},
    {"F64", DType::f64},
    {"F8_E4M3", DType::f8e4m3},
    {"F8_E4M3FNUZ", DType::f8e4m3fnuz},
    {"F8_E5M2", DType::f8e5m2},
    {"F8_E8M0", DType::f8e8m0},
    {"I16", DType::i16},
    {"I32", DType::i32},
    {"I64", DType::i64},
    {"I8", DType::i8},
    {"U16", DType::u16},
    {"U32", DType::u32},
    {"U8", DType::u8},
}};

std::string supported_dtypes() {
  std::string text;
  for (const auto& [name, dtype] : kDTypes) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

// simdjson accepts any value and duplicate keys. This rejects all but an object; the callers reject duplicate keys.
object parse_object(simdjson::dom::parser& parser, std::string_view text, const std::string& where) {
  element root;
  const auto error = parser.parse(text.data(), text.size()).get(root);
  USER_CHECK(!error, "[{}] wanted JSON, but {}", where, simdjson::error_message(error));
  object result;
  USER_CHECK(!root.get(result), "[{}] wanted a JSON object, but it is something else", where);
  return result;
}

std::map<std::string, std::string> parse_texts(const element& value, std::string_view key, const std::string& where) {
  object texts;
  USER_CHECK(!value.get(texts), "[{}] {} must be an object of strings, but is something else", where, key);
  std::map<std::string, std::string> result;
  for (const auto& [name, text] : texts) {
    std::string_view content;
    USER_CHECK(!text.get(content), "[{}] {} of {} must be a string, but is something else", where, quote(name), key);
    USER_CHECK(result.emplace(name, content).second, "[{}] {} occurs twice in {}", where, quote(name), key);
  }
  return result;
}

std::vector<std::int64_t> parse_integers(const element& value, std::string_view key, std::string_view name,
                                         const std::string& where) {
  simdjson::dom::array array;
  USER_CHECK(!value.get(array), "[{}] {} of tensor {} must be a list of integers, but is something else", where, key,
             name);
  std::vector<std::int64_t> result;
  for (const element item : array) {
    std::int64_t number = 0;
    USER_CHECK(item.is<std::int64_t>() && !item.get(number) && number >= 0,
               "[{}] {} of tensor {} must hold integers from 0 that fit 63 bits, but has {}", where, key, name,
               quote(simdjson::minify(item)));
    result.push_back(number);
  }
  return result;
}

// Returns the byte count of a tensor of this dtype and shape.
std::int64_t shape_bytes(const StoredTensor& tensor, const std::string& where) {
  USER_CHECK(tensor.shape.size() <= kMaxRank, "[{}] tensor {} must have at most {} dims, but has {}", where,
             tensor.name, kMaxRank, tensor.shape.size());
  std::int64_t elements = 1;
  bool fits = true;
  for (const auto dim : tensor.shape) fits = !__builtin_mul_overflow(elements, dim, &elements) && fits;
  const auto& info = dtype_info(tensor.dtype);
  USER_CHECK(fits && elements % info.block_elements == 0,
             "[{}] tensor {} must have a count of elements that fits 63 bits and is a multiple of {}, but has shape "
             "[{}]",
             where, tensor.name, info.block_elements, fmt::join(tensor.shape, ", "));
  std::int64_t bytes = 0;
  USER_CHECK(!__builtin_mul_overflow(elements / info.block_elements, info.block_bytes, &bytes),
             "[{}] tensor {} must fit 63 bits of bytes, but has shape [{}]", where, tensor.name,
             fmt::join(tensor.shape, ", "));
  return bytes;
}

StoredTensor parse_tensor(std::string_view name, const element& value, const std::string& where) {
  // Names appear in messages and on terminals.
  USER_CHECK(
      !name.empty() && std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }),
      "[{}] the name of a tensor must not be empty or hold control characters, but is {}", where, quote(name));
  StoredTensor tensor;
  tensor.name = name;
  object fields;
  USER_CHECK(!value.get(fields), "[{}] the entry of tensor {} must be an object, but is something else", where, name);
  std::set<std::string_view> seen;
  std::vector<std::int64_t> offsets;
  for (const auto& [key, field] : fields) {
    USER_CHECK(seen.insert(key).second, "[{}] {} of tensor {} occurs twice", where, key, name);
    if (key == "dtype") {
      std::string_view text;
      USER_CHECK(!field.get(text), "[{}] dtype of tensor {} must be a string, but is something else", where, name);
      const auto dtype = dtype_from_safetensors(text);
      USER_CHECK(dtype, "[{}] tensor {} has dtype {}, which is not supported; supported: {}", where, name, quote(text),
                 supported_dtypes());
      tensor.dtype = *dtype;
    } else if (key == "shape") {
      tensor.shape = parse_integers(field, key, name, where);
    } else if (key == "data_offsets") {
      offsets = parse_integers(field, key, name, where);
    } else {
      fail_user("[{}] tensor {} must have dtype, shape and data_offsets, but has {}", where, name, quote(key));
    }
  }
  USER_CHECK(seen.size() == 3, "[{}] tensor {} must have dtype, shape and data_offsets, but has {} of them", where,
             name, seen.size());
  USER_CHECK(offsets.size() == 2 && offsets[0] <= offsets[1],
             "[{}] data_offsets of tensor {} must be [begin, end], but is [{}]", where, name, fmt::join(offsets, ", "));
  tensor.offset = offsets[0];
  tensor.bytes = offsets[1] - offsets[0];
  const auto wanted = shape_bytes(tensor, where);
  USER_CHECK(tensor.bytes == wanted, "[{}] tensor {} of {}[{}] must have {} bytes, but data_offsets give {}", where,
             name, dtype_text(tensor.dtype), fmt::join(tensor.shape, ", "), wanted, tensor.bytes);
  return tensor;
}

// Sorts the tensors by offset, checks that they fill the data, and makes the offsets relative to the file.
void place_tensors(std::vector<StoredTensor>& tensors, std::uint64_t data_start, std::uint64_t file_bytes,
                   const std::string& where) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.bytes) < std::tie(b.offset, b.bytes);
  });
  const auto data_bytes = static_cast<std::int64_t>(file_bytes - data_start);
  std::int64_t end = 0;
  for (auto& tensor : tensors) {
    USER_CHECK(tensor.offset == end, "[{}] tensor {} must begin at {}, where the one before ends, but begins at {}",
               where, tensor.name, end, tensor.offset);
    end += tensor.bytes;
    USER_CHECK(end <= data_bytes,
               "[{}] tensor {} ends at {} of the data, but the file has {} bytes of data: is it complete?", where,
               tensor.name, end, data_bytes);
    tensor.offset += static_cast<std::int64_t>(data_start);
  }
  USER_CHECK(end == data_bytes, "[{}] the tensors must fill the {} bytes of data, but fill {}", where, data_bytes, end);
}

std::string_view header_text(std::span<const std::byte> file, const std::string& where) {
  check_is_no_lfs_pointer(file, where);
  USER_CHECK(file.size() >= 8, "[{}] wanted a safetensors file, but it has only {} bytes", where, file.size());
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  USER_CHECK(length <= kLongestHeader,
             "[{}] wanted a safetensors file with a header of at most {} bytes, but the header's length is {}", where,
             kLongestHeader, length);
  USER_CHECK(length <= file.size() - 8, "[{}] the header of {} bytes must be inside the file, but the file has {}",
             where, length, file.size());
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  USER_CHECK(!text.empty() && text[0] == '{', "[{}] the header must begin with a brace, but does not", where);
  return text;
}

}  // namespace

Safetensors Safetensors::parse(std::span<const std::byte> file, const std::string& where) {
  const auto text = header_text(file, where);
  simdjson::dom::parser parser;
  Safetensors result;
  std::set<std::string_view> seen;
  for (const auto& [name, value] : parse_object(parser, text, where)) {
    USER_CHECK(seen.insert(name).second, "[{}] tensor {} occurs twice", where, quote(name));
    if (name == "__metadata__") {
      result.metadata = parse_texts(value, name, where);
    } else {
      result.tensors.push_back(parse_tensor(name, value, where));
    }
  }
  place_tensors(result.tensors, 8 + text.size(), file.size(), where);
  return result;
}

std::string_view safetensors_dtype_name(DType dtype) {
  for (const auto& [name, candidate] : kDTypes)
    if (candidate == dtype) return name;
  return "";
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const auto& [candidate, dtype] : kDTypes)
    if (candidate == name) return dtype;
  return std::nullopt;
}

std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& where) {
  simdjson::dom::parser parser;
  std::optional<std::map<std::string, std::string>> files;
  for (const auto& [key, value] : parse_object(parser, without_byte_order_mark(text), where)) {
    if (key != "weight_map") continue;
    USER_CHECK(!files, "[{}] weight_map occurs twice", where);
    files = parse_texts(value, key, where);
  }
  USER_CHECK(files, "[{}] must have weight_map, an object of tensors and their files, but has none", where);
  for (const auto& [name, file] : *files)
    USER_CHECK(!file.empty() && file[0] != '.' && file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos,
               "[{}] the file of tensor {} must be a plain name of a file in the same folder, but is {}", where,
               quote(name), quote(file));
  return *files;
}

bool names_only(std::string_view index, const std::string& file) {
  try {
    const auto files = parse_safetensors_index(index, "");
    return std::all_of(files.begin(), files.end(), [&](const auto& entry) { return entry.second == file; });
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace weft
