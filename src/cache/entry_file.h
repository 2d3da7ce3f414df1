#pragma once

// One entry of the compile cache as a file. Numbers are little-endian.
//
//   byte 0    8   "WEFTCACH"
//        8    4   version of the format
//       12    4   number of factors
//       16    8   bytes of the header, a multiple of 64: where the payload begins
//       24    8   bytes of the payload
//       32   16   XXH3-128 of the payload, the high half first
//       48        the kind, then the name and value of each factor: 4 bytes of length and the text; zeros up to
//       -16  16   XXH3-128 of the header up to here
//   payload, to the end of the file
//
// A key and a payload have exactly one valid file: the reader rejects what the writer would not write.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "base/error.h"
#include "cache/cache_key.h"

namespace weft {

inline constexpr std::size_t kCacheAlignment = 64;                          // of the payload, in bytes
inline constexpr std::size_t kMostCacheHeaderBytes = std::size_t{1} << 20;  // factors are short or hashes

// The bytes are not a valid entry: truncated, damaged, or of another version.
class BadEntry : public UserError {
 public:
  using UserError::UserError;
};

struct EntryFile {
  CacheKey key;
  std::span<const std::byte> payload;  // a part of what was parsed
  ContentHash payload_hash;            // as the header says
};

// The bytes before the payload. InternalError when the factors do not fit into kMostCacheHeaderBytes.
std::vector<std::byte> entry_header(const CacheKey& key, std::span<const std::byte> payload);

// `bytes` are a whole file; the content of the payload is not checked. Throws BadEntry, which names `source` and the
// reason.
EntryFile parse_entry(std::span<const std::byte> bytes, const std::string& source);

// Throws BadEntry unless the payload has the header's hash.
void check_payload(const EntryFile& entry, const std::string& source);

// Throws BadEntry, which names the entry's own key, unless its factors give this kind and hash, under which it is
// stored.
void check_name(const EntryFile& entry, std::string_view kind, std::string_view hash, const std::string& source);

}  // namespace weft
