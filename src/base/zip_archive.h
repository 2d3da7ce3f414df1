#pragma once

// Zip archives. Equal members, added in the same order, give equal files. The reader trusts no value in an archive.
//
// UserError, which begins with [path]: the file is not an archive, or cannot be read or written.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

struct zip;

namespace weft {

// Closes the archive without writing.
struct DiscardArchive {
  void operator()(zip* archive) const;
};

class ZipWriter {
 public:
  // Only write() replaces the file at the path.
  explicit ZipWriter(std::string path);

  // `bytes` must stay valid until write().
  void add(const std::string& name, std::span<const std::byte> bytes);
  // The same for the first members, stored without compression and starting at page boundaries of the file, so that
  // they can be mapped.
  void add_mappable(const std::string& name, std::span<const std::byte> bytes);
  // Writes the archive. Call it once, at the end.
  void write();

 private:
  std::uint64_t add_member(const std::string& name, std::span<const std::byte> bytes);

  std::string path_;
  std::unique_ptr<zip, DiscardArchive> archive_;
  std::int64_t mappable_count_ = 0;
  std::uint64_t mappable_end_ = 0;  // offset in the file
};

class ZipReader {
 public:
  explicit ZipReader(std::string path);

  const std::string& path() const { return path_; }
  // The names in archive order; "" for a member without a name.
  std::vector<std::string> names() const;
  // Reads the whole member and verifies its checksum. UserError with only the reason if it is damaged or has more than
  // `most_bytes`. The size in the archive's header is not trusted.
  std::vector<std::byte> read(std::size_t index, std::size_t most_bytes) const;
  // The byte ranges of the first `count` members in the file. UserError if they are not stored without compression. The
  // bytes are not read, so their checksums are not verified.
  std::vector<FilePart> places_of_first(std::size_t count) const;

 private:
  std::string path_;
  std::unique_ptr<zip, DiscardArchive> archive_;
};

}  // namespace weft
