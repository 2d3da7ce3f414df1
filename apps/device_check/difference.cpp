#include "apps/device_check/difference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "base/error.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include "tensor/float8.h"
#include "tensor/same_elements.h"

namespace weft::device_check {
namespace {

template <class T>
T element(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// The number that an element encodes; nothing for dtypes that are compared bit by bit.
std::optional<float> number_at(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  if (dtype == DType::f32) return element<float>(bytes, i);
  if (dtype == DType::bf16) return bf16_to_f32(element<std::uint16_t>(bytes, i));
  if (dtype == DType::f16) return f16_to_f32(element<std::uint16_t>(bytes, i));
  if (dtype == DType::f8e4m3) return f8e4m3_to_f32(element<std::uint8_t>(bytes, i));
  return std::nullopt;
}

// The distance of two codes of sign and magnitude, counted in codes in the order of their values.
int steps_between(std::uint32_t a, std::uint32_t b, std::uint32_t sign) {
  const auto place = [sign](std::uint32_t code) {
    const int magnitude = static_cast<int>(code & (sign - 1));
    return (code & sign) != 0 ? -magnitude : magnitude;
  };
  return std::abs(place(a) - place(b));
}

bool is_within_a_step(DType dtype, std::uint8_t wanted, std::uint8_t came) {
  if (dtype == DType::i8) return std::abs(static_cast<std::int8_t>(wanted) - static_cast<std::int8_t>(came)) <= 1;
  if (dtype == DType::f8e4m3) return steps_between(wanted, came, 0x80) <= 1;
  return steps_between(wanted & 0xfu, came & 0xfu, 8) <= 1 && steps_between(wanted >> 4, came >> 4, 8) <= 1;
}

// Of what a kernel writes, not of what marks that there is nothing.
float largest_number(DType dtype, std::span<const std::byte> bytes, std::size_t count) {
  constexpr float kMark = 1e30f;
  float largest = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (const std::optional<float> number = number_at(dtype, bytes, i); number && std::abs(*number) < kMark)
      largest = std::max(largest, std::abs(*number));
  return largest;
}

// By how much of itself a value may be off, and by how much whatever it is.
struct Step {
  float of_itself, at_least;
};

bool agrees(DType dtype, std::span<const std::byte> wanted, std::span<const std::byte> came, std::size_t i,
            const std::optional<Step>& step) {
  const auto size = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
  if (are_same_elements(dtype, wanted.data() + i * size, came.data() + i * size, dtype_info(dtype).block_elements))
    return true;
  const std::optional<float> number = number_at(dtype, wanted, i), other = number_at(dtype, came, i);
  if (number && (std::isnan(*number) || std::isnan(*other))) return false;
  if (!step || (number && std::isinf(*number))) return false;
  if (size == 1) return is_within_a_step(dtype, element<std::uint8_t>(wanted, i), element<std::uint8_t>(came, i));
  return number && std::abs(*number - *other) <= std::abs(*number) * step->of_itself + step->at_least;
}

std::string element_text(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  const std::optional<float> number = number_at(dtype, bytes, i);
  if (number) return fmt::format("{}", *number);
  return dtype_info(dtype).block_bytes == 1 ? fmt::format("code {:#x}", element<std::uint8_t>(bytes, i)) : "other bits";
}

}  // namespace

std::string difference_of(const RecordedBuffer& wanted, std::span<const std::byte> came, Bound bound, DType input) {
  CHECK(came.size() == wanted.wanted.size(), "[{}] has {} bytes, but {} were recorded", wanted.name, came.size(),
        wanted.wanted.size());
  if (std::equal(came.begin(), came.end(), wanted.wanted.begin())) return "";
  const std::size_t count = came.size() / static_cast<std::size_t>(dtype_info(wanted.dtype).block_bytes);
  std::optional<Step> step;
  if (bound != Bound::bits) {
    step = {input == DType::bf16 ? 0x1p-6f : input == DType::f16 ? 0x1p-9f : 0x1p-19f, 1e-7f};
    if (bound == Bound::of_largest)
      step->at_least += step->of_itself * largest_number(wanted.dtype, wanted.wanted, count);
  }
  std::size_t differing = 0, first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (agrees(wanted.dtype, wanted.wanted, came, i, step)) continue;
    if (differing++ == 0) first = i;
  }
  if (differing == 0) return "";
  return fmt::format("{}: {} of {} elements differ, first element {}: wanted {}, but is {}", wanted.name, differing,
                     count, first, element_text(wanted.dtype, wanted.wanted, first),
                     element_text(wanted.dtype, came, first));
}

}  // namespace weft::device_check
