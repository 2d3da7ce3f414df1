// Any bytes are an entry of the compile cache that the writer would have written so, or a BadEntry. So that headers are
// reached at all, the checksums are also set right first, as somebody could who wants an entry to be read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry_file.h"

namespace {

using namespace weft;

constexpr std::size_t kHeaderSizeAt = 16, kPayloadHashAt = 32, kHashBytes = 16;

void put_hash(std::string& file, std::size_t at, const ContentHash& hash) {
  std::memcpy(file.data() + at, &hash.high, sizeof hash.high);
  std::memcpy(file.data() + at + sizeof hash.high, &hash.low, sizeof hash.low);
}

std::string sealed(std::string file) {
  std::uint64_t header = 0;
  if (file.size() < kCacheAlignment) return file;
  std::memcpy(&header, file.data() + kHeaderSizeAt, sizeof header);
  if (header < kPayloadHashAt + 2 * kHashBytes || header > file.size()) return file;
  put_hash(file, kPayloadHashAt, hash_bytes(std::string_view(file).substr(header)));
  put_hash(file, header - kHashBytes, hash_bytes(std::string_view(file).substr(0, header - kHashBytes)));
  return file;
}

void read_entry(const std::string& file) {
  try {
    const EntryFile entry = parse_entry(std::as_bytes(std::span(file)), "fuzz");
    check_payload(entry, "fuzz");
    const std::vector<std::byte> header = entry_header(entry.key, entry.payload);
    if (!std::ranges::equal(header, std::as_bytes(std::span(file)).first(header.size()))) std::abort();
    if (header.size() + entry.payload.size() != file.size()) std::abort();
  } catch (const BadEntry&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  read_entry(file);
  read_entry(sealed(file));
  return 0;
}
