#pragma once

// 128-bit hashes of content (XXH3-128), for cache keys, equality and names of entries. They distinguish contents, but
// are not cryptographic: someone can construct a collision on purpose. A hash depends only on the content, so it may be
// stored and compared between machines.

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weft {

struct ContentHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // 32 lower-case hexadecimal digits, the high half first.
  std::string hex() const;
  // The inverse of hex(). UserError unless the text is exactly 32 hexadecimal digits.
  static ContentHash from_hex(std::string_view text);

  friend auto operator<=>(const ContentHash&, const ContentHash&) = default;
};

// The hash of one byte sequence, without framing: the XXH3-128 that other programs compute for a file.
ContentHash hash_bytes(std::span<const std::byte> bytes);
ContentHash hash_bytes(std::string_view bytes);

// XXH3-128 with a secret. Someone who does not know the key cannot construct a collision from the definition of the
// hash alone, so keyed hashes may be of content that comes from outside. They differ from key to key.
using HashKey = std::array<std::byte, 192>;
HashKey random_hash_key();
ContentHash hash_bytes(std::span<const std::byte> bytes, const HashKey& key);

// Computes the hash of a sequence of fields. Each field is hashed with its kind and length, so ("ab", "c"), ("a", "bc")
// and ("abc") differ, and so do the number 1 and the text "1". A list is its length followed by its fields.
class ContentHasher {
 public:
  ContentHasher();
  ~ContentHasher();
  ContentHasher(ContentHasher&&) noexcept;
  ContentHasher& operator=(ContentHasher&&) noexcept;

  ContentHasher& add(std::string_view text);
  ContentHasher& add(std::span<const std::byte> bytes);
  // Equal numbers have the same hash for all integer types.
  template <std::integral Integer>
  ContentHasher& add(Integer number) {
    if constexpr (std::signed_integral<Integer>) {
      if (number < 0) return add_number('-', static_cast<std::uint64_t>(static_cast<std::int64_t>(number)));
    }
    return add_number('+', static_cast<std::uint64_t>(number));
  }
  // Hashes the bits: 0.0 and -0.0 differ.
  ContentHasher& add(double number);
  ContentHasher& add(const ContentHash& hash);

  // The hash of all fields so far. The caller may add more fields after it.
  ContentHash finish() const;

 private:
  ContentHasher& add_number(char kind, std::uint64_t bits);
  void add_frame(char kind, std::uint64_t number);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
