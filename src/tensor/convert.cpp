#include "tensor/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "tensor/bfloat16.h"
#include "tensor/block_format.h"
#include "tensor/float16.h"
#include "tensor/float4.h"
#include "tensor/float8.h"

namespace weft {
namespace {

template <class T>
T load_as(const std::byte* row, std::int64_t index) {
  T value;
  std::memcpy(&value, row + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store_as(std::byte* row, std::int64_t index, T value) {
  std::memcpy(row + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

std::uint8_t nibble(const std::byte* row, std::int64_t index) {
  return load_nibble(reinterpret_cast<const std::uint8_t*>(row), index);
}

void put_nibble(std::byte* row, std::int64_t index, std::uint8_t code) {
  store_nibble(reinterpret_cast<std::uint8_t*>(row), index, code);
}

// Decodes four bits as two's complement.
std::int64_t signed_nibble(std::uint8_t code) { return code < 8 ? code : code - 16; }

struct IntegerRange {
  std::int64_t lo;
  std::int64_t hi;
};

template <class T>
constexpr IntegerRange range_of() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

IntegerRange integer_range(DType dtype) {
  switch (dtype) {
    case DType::i32:
      return range_of<std::int32_t>();
    case DType::i16:
      return range_of<std::int16_t>();
    case DType::i8:
      return range_of<std::int8_t>();
    case DType::u8:
      return range_of<std::uint8_t>();
    case DType::u16:
      return range_of<std::uint16_t>();
    case DType::u32:
      return range_of<std::uint32_t>();
    case DType::i4:
      return {-8, 7};
    default:
      return range_of<std::int64_t>();
  }
}

std::int64_t saturated(double value, IntegerRange range) {
  if (value != value) return 0;
  const double whole = std::trunc(value);
  // The comparison is in double: INT64_MAX rounds up to 2^63, which `>=` still detects.
  if (whole >= static_cast<double>(range.hi)) return range.hi;
  if (whole <= static_cast<double>(range.lo)) return range.lo;
  return static_cast<std::int64_t>(whole);
}

// Whether it is a float narrower than f32.
bool is_small_float(DType dtype) { return is_floating(dtype) && dtype != DType::f32 && dtype != DType::f64; }

float load_small_float(DType dtype, const std::byte* row, std::int64_t index) {
  switch (dtype) {
    case DType::f16:
      return f16_to_f32(load_as<std::uint16_t>(row, index));
    case DType::bf16:
      return bf16_to_f32(load_as<std::uint16_t>(row, index));
    case DType::f8e4m3:
      return f8e4m3_to_f32(load_as<std::uint8_t>(row, index));
    case DType::f8e4m3fnuz:
      return f8e4m3fnuz_to_f32(load_as<std::uint8_t>(row, index));
    case DType::f8e5m2:
      return f8e5m2_to_f32(load_as<std::uint8_t>(row, index));
    case DType::f8e8m0:
      return f8e8m0_to_f32(load_as<std::uint8_t>(row, index));
    default:
      return f4e2m1_to_f32(nibble(row, index));
  }
}

void store_small_float(DType dtype, std::byte* row, std::int64_t index, float value) {
  switch (dtype) {
    case DType::f16:
      return store_as(row, index, f32_to_f16(value));
    case DType::bf16:
      return store_as(row, index, f32_to_bf16(value));
    case DType::f8e4m3:
      return store_as(row, index, f32_to_f8e4m3(value));
    case DType::f8e4m3fnuz:
      return store_as(row, index, f32_to_f8e4m3fnuz(value));
    case DType::f8e5m2:
      return store_as(row, index, f32_to_f8e5m2(value));
    case DType::f8e8m0:
      return store_as(row, index, f32_to_f8e8m0(value));
    default:
      return put_nibble(row, index, f32_to_f4e2m1(value));
  }
}

[[noreturn]] void fail_block_store(DType dtype) {
  fail_user("[cast] values cannot be cast to the block type {}", dtype_text(dtype));
}

std::int64_t load_whole(DType dtype, const std::byte* row, std::int64_t index) {
  switch (dtype) {
    case DType::i64:
      return load_as<std::int64_t>(row, index);
    case DType::i32:
      return load_as<std::int32_t>(row, index);
    case DType::i16:
      return load_as<std::int16_t>(row, index);
    case DType::i8:
      return load_as<std::int8_t>(row, index);
    case DType::u16:
      return load_as<std::uint16_t>(row, index);
    case DType::u32:
      return load_as<std::uint32_t>(row, index);
    case DType::i4:
      return signed_nibble(nibble(row, index));
    case DType::boolean:
      return load_as<std::uint8_t>(row, index) != 0 ? 1 : 0;
    default:
      return load_as<std::uint8_t>(row, index);
  }
}

// Copies elements that keep their dtype.
void copy_row(DType dtype, const std::byte* source, std::byte* target, std::int64_t count) {
  const DTypeInfo& info = dtype_info(dtype);
  const std::int64_t whole = count / info.block_elements;
  std::memcpy(target, source, static_cast<std::size_t>(whole * info.block_bytes));
  CHECK(!is_block(dtype) || count % info.block_elements == 0, "[cast] {} elements of {} are not whole blocks", count,
        dtype_text(dtype));
  for (std::int64_t i = whole * info.block_elements; i < count; ++i) put_nibble(target, i, nibble(source, i));
}

}  // namespace

float load_float(DType dtype, const std::byte* row, std::int64_t index) {
  if (dtype == DType::f32) return load_as<float>(row, index);
  if (dtype == DType::f64) return static_cast<float>(load_as<double>(row, index));
  if (is_small_float(dtype)) return load_small_float(dtype, row, index);
  if (is_block(dtype)) return load_block_element(dtype, row, index);
  return static_cast<float>(load_whole(dtype, row, index));
}

double load_double(DType dtype, const std::byte* row, std::int64_t index) {
  if (dtype == DType::f64) return load_as<double>(row, index);
  if (is_floating(dtype) || is_block(dtype)) return load_float(dtype, row, index);
  return static_cast<double>(load_whole(dtype, row, index));
}

void store_float(DType dtype, std::byte* row, std::int64_t index, float value) {
  if (dtype == DType::f32) return store_as(row, index, value);
  if (is_small_float(dtype)) return store_small_float(dtype, row, index, value);
  store_double(dtype, row, index, value);
}

void store_double(DType dtype, std::byte* row, std::int64_t index, double value) {
  if (is_block(dtype)) fail_block_store(dtype);
  if (dtype == DType::f64) return store_as(row, index, value);
  if (dtype == DType::f32) return store_as(row, index, static_cast<float>(value));
  if (is_floating(dtype)) return store_small_float(dtype, row, index, round_to_odd(value));
  if (dtype == DType::boolean) return store_as<std::uint8_t>(row, index, value != 0.0 ? 1 : 0);
  store_integer(dtype, row, index, saturated(value, integer_range(dtype)));
}

std::int64_t load_integer(DType dtype, const std::byte* row, std::int64_t index) {
  if (is_floating(dtype) || is_block(dtype))
    return saturated(load_double(dtype, row, index), integer_range(DType::i64));
  return load_whole(dtype, row, index);
}

void store_integer(DType dtype, std::byte* row, std::int64_t index, std::int64_t value) {
  switch (dtype) {
    case DType::i64:
      return store_as(row, index, value);
    case DType::i32:
    case DType::u32:
      return store_as(row, index, static_cast<std::uint32_t>(value));
    case DType::i16:
    case DType::u16:
      return store_as(row, index, static_cast<std::uint16_t>(value));
    case DType::i8:
    case DType::u8:
      return store_as(row, index, static_cast<std::uint8_t>(value));
    case DType::i4:
      return put_nibble(row, index, static_cast<std::uint8_t>(value & 0xf));
    case DType::boolean:
      return store_as<std::uint8_t>(row, index, value != 0 ? 1 : 0);
    case DType::f64:
      return store_as(row, index, static_cast<double>(value));
    default:
      return store_float(dtype, row, index, static_cast<float>(value));
  }
}

// Converts whole blocks. Values are dequantized to f32 first, a part of the row at a time.
static void dequantize_into(DType from, const std::byte* source, DType to, std::byte* target, std::int64_t count) {
  if (to == DType::f32) return dequantize_row(from, source, reinterpret_cast<float*>(target), count);
  constexpr std::int64_t kPart = kMaxBlockElements;
  float values[kPart];
  for (std::int64_t first = 0; first < count; first += kPart) {
    const std::int64_t part = std::min(kPart, count - first);
    dequantize_row(from, source + bytes_of(from, first), values, part);
    convert_row(DType::f32, reinterpret_cast<const std::byte*>(values), to, target + bytes_of(to, first), part);
  }
}

void convert_row(DType from, const std::byte* source, DType to, std::byte* target, std::int64_t count) {
  if (count == 0) return;
  if (from == to) return copy_row(from, source, target, count);
  if (is_block(to)) fail_block_store(to);
  const bool whole = !is_floating(from) && !is_block(from);
  if (is_block(from) && count % dtype_info(from).block_elements == 0) {
    dequantize_into(from, source, to, target, count);
  } else if (from == DType::f16 && to == DType::f32) {
    for (std::int64_t i = 0; i < count; ++i) store_as(target, i, f16_to_f32(load_as<std::uint16_t>(source, i)));
  } else if (from == DType::bf16 && to == DType::f32) {
    for (std::int64_t i = 0; i < count; ++i) store_as(target, i, bf16_to_f32(load_as<std::uint16_t>(source, i)));
  } else if (from == DType::f32 && to == DType::f16) {
    for (std::int64_t i = 0; i < count; ++i) store_as(target, i, f32_to_f16(load_as<float>(source, i)));
  } else if (from == DType::f32 && to == DType::bf16) {
    for (std::int64_t i = 0; i < count; ++i) store_as(target, i, f32_to_bf16(load_as<float>(source, i)));
  } else if (whole) {
    for (std::int64_t i = 0; i < count; ++i) store_integer(to, target, i, load_whole(from, source, i));
  } else if (from == DType::f64) {
    for (std::int64_t i = 0; i < count; ++i) store_double(to, target, i, load_as<double>(source, i));
  } else {
    for (std::int64_t i = 0; i < count; ++i) store_float(to, target, i, load_float(from, source, i));
  }
}

}  // namespace weft
