#pragma once

// Writes and reads numbers and texts as bytes, for Weft's own files: little-endian, without alignment, the same on each
// machine. A text or a list begins with its length in 32 bits.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/content_hash.h"
#include "base/error.h"

namespace weft {

class ByteWriter {
 public:
  template <std::integral Integer>
  void number(Integer value) {
    auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(bits) >> (8 * i)));
  }
  void boolean(bool value) { number<std::uint8_t>(value ? 1 : 0); }
  void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void count(std::size_t count) {
    CHECK(count <= UINT32_MAX, "a list of {} is too long to write", count);
    number(static_cast<std::uint32_t>(count));
  }
  void text(std::string_view text) {
    count(text.size());
    raw(std::as_bytes(std::span(text)));
  }
  // The high half first.
  void hash(const ContentHash& hash) {
    number(hash.high);
    number(hash.low);
  }
  // Writes the bytes unchanged, without their length.
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Never reads outside of the bytes. UserError, with the byte offset, if the content is not as expected.
class ByteReader {
 public:
  // The bytes must outlive the reader and the texts that it returns.
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

  template <std::integral Integer>
  Integer number() {
    const std::span<const std::byte> from = raw(sizeof(Integer));
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i) bits |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    return static_cast<Integer>(bits);
  }
  bool boolean() {
    const auto value = number<std::uint8_t>();
    USER_CHECK(value <= 1, "byte {} must be 0 or 1, but is {}", position_ - 1, value);
    return value == 1;
  }
  double real() { return std::bit_cast<double>(number<std::uint64_t>()); }
  // A count of items of at least one byte each, so it never exceeds the number of remaining bytes.
  std::size_t count() {
    const auto count = number<std::uint32_t>();
    USER_CHECK(count <= left(), "byte {} begins a list of {}, but only {} bytes are left", position_ - 4, count,
               left());
    return count;
  }
  std::string_view text() {
    const std::span<const std::byte> from = raw(count());
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  ContentHash hash() {
    const auto high = number<std::uint64_t>();
    return {.high = high, .low = number<std::uint64_t>()};
  }
  std::span<const std::byte> raw(std::size_t count) {
    USER_CHECK(count <= left(), "wanted {} bytes at byte {}, but only {} are left", count, position_, left());
    const std::span<const std::byte> from = bytes_.subspan(position_, count);
    position_ += count;
    return from;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace weft
