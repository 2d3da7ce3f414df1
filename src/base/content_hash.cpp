#include "base/content_hash.h"

#include <array>
#include <bit>
#include <charconv>
#include <new>
#include <random>

#include <xxhash.h>

#include "base/error.h"

namespace weft {
namespace {

ContentHash from_xxhash(const XXH128_hash_t& hash) { return {.high = hash.high64, .low = hash.low64}; }

bool is_hexadecimal_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::uint64_t hexadecimal_half(std::string_view digits) {
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

}  // namespace

std::string ContentHash::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

ContentHash ContentHash::from_hex(std::string_view text) {
  bool valid = text.size() == 32;
  for (const char c : text) valid = valid && is_hexadecimal_digit(c);
  USER_CHECK(valid, "[content hash] wanted 32 hexadecimal digits, but got {} characters that are not", text.size());
  return {.high = hexadecimal_half(text.substr(0, 16)), .low = hexadecimal_half(text.substr(16))};
}

ContentHash hash_bytes(std::span<const std::byte> bytes) {
  return from_xxhash(XXH3_128bits(bytes.data(), bytes.size()));
}

ContentHash hash_bytes(std::string_view bytes) { return from_xxhash(XXH3_128bits(bytes.data(), bytes.size())); }

HashKey random_hash_key() {
  std::random_device random;
  HashKey key;
  for (std::byte& byte : key) byte = static_cast<std::byte>(random());
  return key;
}

ContentHash hash_bytes(std::span<const std::byte> bytes, const HashKey& key) {
  return from_xxhash(XXH3_128bits_withSecret(bytes.data(), bytes.size(), key.data(), key.size()));
}

struct ContentHasher::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxhash{XXH3_createState()};
};

ContentHasher::ContentHasher() : state_(std::make_unique<State>()) {
  if (!state_->xxhash) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxhash.get());
}

ContentHasher::~ContentHasher() = default;
ContentHasher::ContentHasher(ContentHasher&&) noexcept = default;
ContentHasher& ContentHasher::operator=(ContentHasher&&) noexcept = default;

void ContentHasher::add_frame(char kind, std::uint64_t number) {
  std::array<unsigned char, 9> frame;
  frame[0] = static_cast<unsigned char>(kind);
  // Writes single bytes, so that the hash does not depend on the byte order of the machine.
  for (std::size_t i = 0; i < 8; ++i) frame[i + 1] = static_cast<unsigned char>(number >> (8 * i));
  XXH3_128bits_update(state_->xxhash.get(), frame.data(), frame.size());
}

ContentHasher& ContentHasher::add(std::string_view text) { return add(std::as_bytes(std::span(text))); }

ContentHasher& ContentHasher::add(std::span<const std::byte> bytes) {
  add_frame('b', bytes.size());
  XXH3_128bits_update(state_->xxhash.get(), bytes.data(), bytes.size());
  return *this;
}

ContentHasher& ContentHasher::add(double number) { return add_number('d', std::bit_cast<std::uint64_t>(number)); }

ContentHasher& ContentHasher::add(const ContentHash& hash) {
  add_frame('h', hash.high);
  add_frame('h', hash.low);
  return *this;
}

ContentHasher& ContentHasher::add_number(char kind, std::uint64_t bits) {
  add_frame(kind, bits);
  return *this;
}

ContentHash ContentHasher::finish() const { return from_xxhash(XXH3_128bits_digest(state_->xxhash.get())); }

}  // namespace weft
