#include "cache/entry_file.h"

#include <algorithm>
#include <utility>

#include "base/byte_stream.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::string_view kMagic = "WEFTCACH";
constexpr std::size_t kHashBytes = 16;
constexpr std::size_t kFixedBytes = 48;

std::vector<std::byte> header_of(const CacheKey& key, std::uint64_t payload_bytes, const ContentHash& payload_hash) {
  std::size_t used = kFixedBytes + 4 + key.kind().size();
  for (const CacheFactor& factor : key.factors()) used += 8 + factor.name.size() + factor.value.size();
  const std::size_t header_bytes = (used + kHashBytes + kCacheAlignment - 1) / kCacheAlignment * kCacheAlignment;
  CHECK(header_bytes <= kMostCacheHeaderBytes,
        "[cache key] the factors of an entry of kind {} take {} bytes, more than {}: give long content as a hash",
        key.kind(), used, kMostCacheHeaderBytes);
  ByteWriter writer;
  writer.raw(std::as_bytes(std::span(kMagic)));
  writer.number(kCacheFormat);
  writer.number(static_cast<std::uint32_t>(key.factors().size()));
  writer.number(std::uint64_t{header_bytes});
  writer.number(payload_bytes);
  writer.hash(payload_hash);
  writer.text(key.kind());
  for (const CacheFactor& factor : key.factors()) {
    writer.text(factor.name);
    writer.text(factor.value);
  }
  while (writer.bytes().size() < header_bytes - kHashBytes) writer.number(std::uint8_t{0});
  writer.hash(hash_bytes(writer.bytes()));
  return writer.take();
}

// Reads the kind and the factors. Throws UserError if the bytes are not a key.
CacheKey read_key(ByteReader reader, std::uint32_t factor_count) {
  const std::string kind(reader.text());
  USER_CHECK(CacheKey::is_kind(kind), "{} is not a kind", quote(kind));
  std::vector<CacheFactor> factors;
  for (std::uint32_t i = 0; i < factor_count; ++i) {
    const std::string_view name = reader.text();
    factors.push_back({std::string(name), std::string(reader.text())});
  }
  const std::string* repeated = CacheKey::repeated_name(factors);
  if (repeated != nullptr) fail_user("it has the factor {} twice", quote(*repeated));
  return CacheKey(kind, std::move(factors));
}

// Throws UserError with the reason only; the caller adds the source.
EntryFile read_entry(std::span<const std::byte> bytes) {
  USER_CHECK(bytes.size() >= kCacheAlignment, "it is cut short");
  ByteReader reader(bytes);
  const std::span<const std::byte> magic = std::as_bytes(std::span(kMagic));
  USER_CHECK(std::ranges::equal(reader.raw(magic.size()), magic), "it does not begin as one");
  const auto version = reader.number<std::uint32_t>();
  USER_CHECK(version == kCacheFormat, "it is of version {}, and version {} is read", version, kCacheFormat);
  const auto factor_count = reader.number<std::uint32_t>();
  const auto header_bytes = reader.number<std::uint64_t>();
  USER_CHECK(
      header_bytes % kCacheAlignment == 0 && header_bytes >= kCacheAlignment && header_bytes <= kMostCacheHeaderBytes,
      "its header is damaged");
  USER_CHECK(header_bytes <= bytes.size(), "it is cut short");
  const std::span<const std::byte> header = bytes.first(header_bytes);
  ByteReader seal(header.last(kHashBytes));
  USER_CHECK(seal.hash() == hash_bytes(header.first(header_bytes - kHashBytes)), "its header is damaged");

  const auto payload_bytes = reader.number<std::uint64_t>();
  const std::span<const std::byte> payload = bytes.subspan(header_bytes);
  USER_CHECK(payload_bytes == payload.size(), "its payload has {} bytes instead of {}", payload.size(), payload_bytes);
  const ContentHash payload_hash = reader.hash();
  const ByteReader key_reader(header.first(header_bytes - kHashBytes).subspan(kFixedBytes));
  EntryFile entry{read_key(key_reader, factor_count), payload, payload_hash};
  USER_CHECK(std::ranges::equal(header, header_of(entry.key, payload_bytes, payload_hash)),
             "there is more data after its factors");
  return entry;
}

[[noreturn]] void refuse(const std::string& source, std::string_view reason) {
  throw BadEntry(fmt::format("[{}] is not an entry of the compile cache: {}", quote(source, 1000), reason));
}

}  // namespace

std::vector<std::byte> entry_header(const CacheKey& key, std::span<const std::byte> payload) {
  return header_of(key, payload.size(), hash_bytes(payload));
}

EntryFile parse_entry(std::span<const std::byte> bytes, const std::string& source) {
  try {
    return read_entry(bytes);
  } catch (const UserError& error) {
    refuse(source, error.what());
  }
}

void check_payload(const EntryFile& entry, const std::string& source) {
  if (hash_bytes(entry.payload) != entry.payload_hash) refuse(source, "its payload is damaged");
}

void check_name(const EntryFile& entry, std::string_view kind, std::string_view hash, const std::string& source) {
  const std::string own = entry.key.hash().hex();
  if (entry.key.kind() == kind && own == hash) return;
  refuse(source, fmt::format("its content is that of {} {}, under another name", entry.key.kind(), own));
}

}  // namespace weft
