#include "io/gguf.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include <fmt/core.h>

#include "base/error.h"
#include "io/gguf_header.h"
#include "io/model_files.h"
#include "tensor/dtype.h"

namespace weft {
namespace {

constexpr std::uint64_t kLongestName = 65535;  // from the specification; ggml limits tensor names to 63
constexpr std::uint64_t kLeastEntryBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr std::int64_t kGreatestAlignment = 1 << 20;

void read_magic(GgufCursor& cursor, std::uint32_t& version) {
  const auto magic = cursor.take(4);
  USER_CHECK(std::memcmp(magic.data(), "GGUF", 4) == 0, "[{}] wanted a GGUF file, but it does not begin with GGUF",
             cursor.where());
  version = cursor.number<std::uint32_t>();
  USER_CHECK(version != 0x02000000 && version != 0x03000000,
             "[{}] wanted a little-endian GGUF file, but this one is big-endian", cursor.where());
  USER_CHECK(version == 2 || version == 3, "[{}] wanted GGUF version 2 or 3, but is version {}", cursor.where(),
             version);
}

void check_booleans(std::span<const std::byte> data, std::string_view key, const std::string& where) {
  for (const auto value : data)
    USER_CHECK(std::to_integer<int>(value) <= 1, "[{}] key {} must hold booleans of 0 or 1, but has {}", where, key,
               std::to_integer<int>(value));
}

GgufValue read_value(GgufCursor& cursor, std::string_view key) {
  GgufValue value;
  value.type = cursor.type();
  if (value.type == GgufType::array) {
    value.is_array = true;
    value.type = cursor.type();
    USER_CHECK(value.type != GgufType::array, "[{}] key {} is an array of arrays, which is not supported",
               cursor.where(), key);
    const auto number_bytes = static_cast<std::uint64_t>(gguf_number_bytes(value.type));
    value.count = cursor.count(number_bytes == 0 ? 8 : number_bytes);
  }
  if (value.type == GgufType::text) {
    GgufCursor ahead = cursor;
    for (std::uint64_t i = 0; i < value.count; ++i) ahead.text();
    value.data = cursor.take(ahead.offset() - cursor.offset());
  } else {
    value.data = cursor.take(value.count * static_cast<std::uint64_t>(gguf_number_bytes(value.type)));
  }
  if (value.type == GgufType::boolean) check_booleans(value.data, key, cursor.where());
  return value;
}

// Returns the indices sorted by name. UserError if a name occurs twice.
template <class Item, class Name>
std::vector<std::uint32_t> sort_names(const std::vector<Item>& items, Name name, std::string_view kind,
                                      const std::string& where) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return name(items[a]) < name(items[b]); });
  for (std::size_t i = 1; i < order.size(); ++i)
    USER_CHECK(name(items[order[i - 1]]) != name(items[order[i]]), "[{}] {} {} occurs twice", where, kind,
               name(items[order[i]]));
  return order;
}

template <class Item, class Name>
const Item* find_name(const std::vector<Item>& items, const std::vector<std::uint32_t>& order, Name name,
                      std::string_view wanted) {
  const auto at = std::lower_bound(order.begin(), order.end(), wanted,
                                   [&](auto index, std::string_view text) { return name(items[index]) < text; });
  return at != order.end() && name(items[*at]) == wanted ? &items[*at] : nullptr;
}

std::string_view key_of(const GgufEntry& entry) { return entry.key; }
std::string_view name_of(const GgufTensor& tensor) { return tensor.name; }

// Sets the row-major shape and the byte count. In the file, the contiguous dimension is the first.
void read_shape(GgufCursor& cursor, GgufTensor& tensor) {
  const auto rank = cursor.number<std::uint32_t>();
  USER_CHECK(rank >= 1 && rank <= 4, "[{}] tensor {} must have 1 to 4 dims, but has {}", cursor.where(), tensor.name,
             rank);
  std::int64_t elements = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto dim = cursor.number<std::uint64_t>();
    USER_CHECK(
        dim >= 1 && dim <= INT64_MAX && !__builtin_mul_overflow(elements, static_cast<std::int64_t>(dim), &elements),
        "[{}] tensor {} must have dims from 1 whose product fits 63 bits, but ne[{}] is {}", cursor.where(),
        tensor.name, i, dim);
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(dim));
  }
  const auto type = cursor.number<std::uint32_t>();
  const auto dtype = dtype_from_ggml(type);
  const auto type_name = ggml_type_name(type);
  USER_CHECK(dtype || type_name.empty(), "[{}] tensor {} has type {}, which is not supported yet; supported: {}",
             cursor.where(), tensor.name, type_name, supported_ggml_types());
  USER_CHECK(dtype, "[{}] tensor {} has type id {}, which is not known; supported: {}", cursor.where(), tensor.name,
             type, supported_ggml_types());
  tensor.dtype = *dtype;
  const auto& info = dtype_info(tensor.dtype);
  USER_CHECK(tensor.shape.back() % info.block_elements == 0,
             "[{}] tensor {} of type {} must have rows of a multiple of {} elements, but of {}", cursor.where(),
             tensor.name, info.text, info.block_elements, tensor.shape.back());
  USER_CHECK(!__builtin_mul_overflow(elements / info.block_elements, info.block_bytes, &tensor.bytes),
             "[{}] tensor {} must fit 63 bits of bytes, but has {} elements of {}", cursor.where(), tensor.name,
             elements, info.text);
}

// The file stores offsets relative to the data, which begins at the first aligned byte after the header.
void place_tensors(const GgufCursor& end_of_header, std::vector<GgufTensor>& tensors, std::int64_t alignment) {
  const auto& where = end_of_header.where();
  const auto header = static_cast<std::int64_t>(end_of_header.offset());
  const auto file_bytes = header + static_cast<std::int64_t>(end_of_header.left());
  const std::int64_t data_start = (header + alignment - 1) / alignment * alignment;
  for (auto& tensor : tensors) {
    USER_CHECK(tensor.offset % alignment == 0, "[{}] tensor {} must be at a multiple of {}, but its offset is {}",
               where, tensor.name, alignment, tensor.offset);
    std::int64_t end = 0;
    USER_CHECK(!__builtin_add_overflow(tensor.offset, data_start, &tensor.offset) &&
                   !__builtin_add_overflow(tensor.offset, tensor.bytes, &end) && end <= file_bytes,
               "[{}] tensor {} of {} bytes at offset {} must be inside the file, but the file has {} bytes: is it "
               "complete?",
               where, tensor.name, tensor.bytes, tensor.offset, file_bytes);
  }
  std::vector<const GgufTensor*> by_offset;
  for (const auto& tensor : tensors) by_offset.push_back(&tensor);
  std::stable_sort(by_offset.begin(), by_offset.end(), [](auto a, auto b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i)
    USER_CHECK(by_offset[i - 1]->offset + by_offset[i - 1]->bytes <= by_offset[i]->offset,
               "[{}] tensors {} and {} overlap", where, by_offset[i - 1]->name, by_offset[i]->name);
}

template <class T>
std::int64_t to_integer(T value, std::string_view key, const std::string& where) {
  if constexpr (std::is_same_v<T, std::uint64_t>)
    USER_CHECK(value <= INT64_MAX, "[{}] key {} must fit 63 bits, but is {}", where, key, value);
  return static_cast<std::int64_t>(value);
}

template <class T>
double to_real(T value, std::string_view key, const std::string& where) {
  USER_CHECK(std::isfinite(static_cast<double>(value)), "[{}] key {} must be finite, but is {}", where, key, value);
  // Returns the decimal number that the writer meant: an f32 epsilon is 1e-05, not 9.999999747378752e-06.
  if constexpr (std::is_same_v<T, float>) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    double meant = value;
    std::from_chars(text, end, meant);
    return meant;
  }
  return static_cast<double>(value);
}

// Calls use(number) with each stored number. False if the value is not a number, or is a float although `integers` is
// set.
template <class Use>
bool each_number(const GgufValue& value, bool integers, Use use) {
  const auto all = [&]<class T>(T) {
    for (std::uint64_t i = 0; i < value.count; ++i) use(gguf_number<T>(value.data, i));
    return true;
  };
  switch (value.type) {
    case GgufType::u8:
      return all(std::uint8_t{});
    case GgufType::i8:
      return all(std::int8_t{});
    case GgufType::u16:
      return all(std::uint16_t{});
    case GgufType::i16:
      return all(std::int16_t{});
    case GgufType::u32:
      return all(std::uint32_t{});
    case GgufType::i32:
      return all(std::int32_t{});
    case GgufType::u64:
      return all(std::uint64_t{});
    case GgufType::i64:
      return all(std::int64_t{});
    case GgufType::f32:
      return !integers && all(float{});
    case GgufType::f64:
      return !integers && all(double{});
    case GgufType::boolean:
    case GgufType::text:
    case GgufType::array:
      return false;
  }
  return false;
}

std::vector<std::int64_t> to_integers(const GgufValue& value, std::string_view key, const std::string& where) {
  std::vector<std::int64_t> result;
  const bool ok = each_number(value, true, [&](auto number) {
    if constexpr (std::is_integral_v<decltype(number)>) result.push_back(to_integer(number, key, where));
  });
  USER_CHECK(ok, "[{}] key {} must hold integers, but is {}", where, key, value.type_name());
  return result;
}

std::vector<double> to_reals(const GgufValue& value, std::string_view key, const std::string& where) {
  std::vector<double> result;
  const bool ok = each_number(value, false, [&](auto number) { result.push_back(to_real(number, key, where)); });
  USER_CHECK(ok, "[{}] key {} must hold numbers, but is {}", where, key, value.type_name());
  return result;
}

// Returns the strings of a value of type text. parse() has checked their bounds.
std::vector<std::string_view> to_texts(const GgufValue& value, const std::string& where) {
  GgufCursor cursor(value.data, where);
  std::vector<std::string_view> result(value.count);
  for (auto& text : result) text = cursor.text();
  return result;
}

}  // namespace

std::string_view gguf_type_text(GgufType type) {
  constexpr std::string_view kTexts[] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "text", "array", "u64", "i64", "f64"};
  return kTexts[static_cast<std::uint32_t>(type)];
}

std::string GgufValue::type_name() const {
  return is_array ? fmt::format("array of {} {}", count, gguf_type_text(type)) : std::string(gguf_type_text(type));
}

Gguf Gguf::parse(std::span<const std::byte> file, std::string where) {
  Gguf gguf;
  gguf.where_ = std::move(where);
  check_is_no_lfs_pointer(file, gguf.where_);
  GgufCursor cursor(file, gguf.where_);
  read_magic(cursor, gguf.version_);
  cursor.reading("the count of tensors");
  const auto tensor_count = cursor.count(kLeastTensorBytes);
  cursor.reading("the count of keys");
  const auto entry_count = cursor.count(kLeastEntryBytes);

  for (std::uint64_t i = 0; i < entry_count; ++i) {
    cursor.reading(fmt::format("key {} of {}", i + 1, entry_count));
    GgufEntry entry;
    entry.key = cursor.name(kLongestName);
    cursor.reading(fmt::format("the value of key {}", entry.key));
    entry.value = read_value(cursor, entry.key);
    gguf.entries_.push_back(entry);
  }
  gguf.entries_by_key_ = sort_names(gguf.entries_, key_of, "key", gguf.where_);

  if (const auto alignment = gguf.find_integer("general.alignment")) {
    USER_CHECK(*alignment >= 1 && *alignment <= kGreatestAlignment &&
                   std::has_single_bit(static_cast<std::uint64_t>(*alignment)),
               "[{}] general.alignment must be a power of two of at most {}, but is {}", gguf.where_,
               kGreatestAlignment, *alignment);
    gguf.alignment_ = *alignment;
  }

  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    cursor.reading(fmt::format("tensor {} of {}", i + 1, tensor_count));
    GgufTensor tensor;
    tensor.name = cursor.name(kLongestName);
    cursor.reading(fmt::format("the shape of tensor {}", tensor.name));
    read_shape(cursor, tensor);
    const auto offset = cursor.number<std::uint64_t>();
    USER_CHECK(offset <= cursor.offset() + cursor.left(),
               "[{}] tensor {} must be inside the file of {} bytes, but its offset is {}: is the file complete?",
               gguf.where_, tensor.name, cursor.offset() + cursor.left(), offset);
    tensor.offset = static_cast<std::int64_t>(offset);
    gguf.tensors_.push_back(std::move(tensor));
  }
  gguf.tensors_by_name_ = sort_names(gguf.tensors_, name_of, "tensor", gguf.where_);
  place_tensors(cursor, gguf.tensors_, gguf.alignment_);
  return gguf;
}

Gguf Gguf::of_parts(std::vector<Gguf> parts) {
  CHECK(!parts.empty(), "a model of no parts");
  Gguf whole = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i)
    std::move(parts[i].tensors_.begin(), parts[i].tensors_.end(), std::back_inserter(whole.tensors_));
  whole.tensors_by_name_ = sort_names(whole.tensors_, name_of, "tensor", whole.where_);
  return whole;
}

const GgufTensor* Gguf::find_tensor(std::string_view name) const {
  return find_name(tensors_, tensors_by_name_, name_of, name);
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto* entry = find_name(entries_, entries_by_key_, key_of, key);
  return entry == nullptr ? nullptr : &entry->value;
}

const GgufValue* Gguf::find_kind(std::string_view key, bool is_array, std::string_view wanted) const {
  const auto* value = find(key);
  if (value != nullptr)
    USER_CHECK(value->is_array == is_array, "[{}] key {} must be {}, but is {}", where_, key, wanted,
               value->type_name());
  return value;
}

std::optional<std::int64_t> Gguf::find_integer(std::string_view key) const {
  const auto* value = find_kind(key, false, "an integer");
  if (value == nullptr) return std::nullopt;
  return to_integers(*value, key, where_).front();
}

std::optional<double> Gguf::find_real(std::string_view key) const {
  const auto* value = find_kind(key, false, "a number");
  if (value == nullptr) return std::nullopt;
  return to_reals(*value, key, where_).front();
}

std::optional<bool> Gguf::find_boolean(std::string_view key) const {
  const auto* value = find_kind(key, false, "a boolean");
  if (value == nullptr) return std::nullopt;
  USER_CHECK(value->type == GgufType::boolean, "[{}] key {} must be a boolean, but is {}", where_, key,
             value->type_name());
  return value->data[0] != std::byte{0};
}

std::optional<std::string_view> Gguf::find_text(std::string_view key) const {
  const auto* value = find_kind(key, false, "text");
  if (value == nullptr) return std::nullopt;
  USER_CHECK(value->type == GgufType::text, "[{}] key {} must be text, but is {}", where_, key, value->type_name());
  return to_texts(*value, where_).front();
}

std::optional<std::vector<std::int64_t>> Gguf::find_integers(std::string_view key) const {
  const auto* value = find_kind(key, true, "an array of integers");
  if (value == nullptr) return std::nullopt;
  return to_integers(*value, key, where_);
}

std::optional<std::vector<double>> Gguf::find_reals(std::string_view key) const {
  const auto* value = find_kind(key, true, "an array of numbers");
  if (value == nullptr) return std::nullopt;
  return to_reals(*value, key, where_);
}

std::optional<std::vector<std::string_view>> Gguf::find_texts(std::string_view key) const {
  const auto* value = find_kind(key, true, "an array of text");
  if (value == nullptr) return std::nullopt;
  USER_CHECK(value->type == GgufType::text, "[{}] key {} must hold text, but is {}", where_, key, value->type_name());
  return to_texts(*value, where_);
}

std::int64_t Gguf::integer(std::string_view key) const {
  const auto value = find_integer(key);
  USER_CHECK(value, "[{}] wanted the key {}, an integer, but there is none", where_, key);
  return *value;
}

double Gguf::real(std::string_view key) const {
  const auto value = find_real(key);
  USER_CHECK(value, "[{}] wanted the key {}, a number, but there is none", where_, key);
  return *value;
}

std::string_view Gguf::text(std::string_view key) const {
  const auto value = find_text(key);
  USER_CHECK(value, "[{}] wanted the key {}, text, but there is none", where_, key);
  return *value;
}

}  // namespace weft
