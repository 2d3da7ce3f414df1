#pragma once

// Zip archives: equal members, added in the same order, give equal files; of what is read nothing is believed.
//
// UserError, which begins with [path]: the file is no archive, or cannot be read or written there.

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
  // Whatever is at the path is replaced by write(), and by nothing before.
  explicit ZipWriter(std::string path);

  // `bytes` must stay until write().
  void add(const std::string& name, std::span<const std::byte> bytes);
  // The same for the first members, as they are and each from a page boundary of the file on, so that they can be
  // mapped there.
  void add_mappable(const std::string& name, std::span<const std::byte> bytes);
  // Once, at the end.
  void write();

 private:
  std::uint64_t add_member(const std::string& name, std::span<const std::byte> bytes);

  std::string path_;
  std::unique_ptr<zip, DiscardArchive> archive_;
  std::int64_t mappable_count_ = 0;
  std::uint64_t mappable_end_ = 0;  // in the file
};

class ZipReader {
 public:
  explicit ZipReader(std::string path);

  const std::string& path() const { return path_; }
  // In the order of the archive; one without a name has "".
  std::vector<std::string> names() const;
  // Everything that the member holds, its checksum held against it. UserError with the reason alone where it is damaged
  // or has more than `most_bytes`; what the archive says of its size does not count.
  std::vector<std::byte> read(std::size_t index, std::size_t most_bytes) const;
  // Where the bytes of the first `count` members lie in the file. UserError where they are not there as they are. They
  // are not read, so no checksum is held against them.
  std::vector<FilePart> places_of_first(std::size_t count) const;

 private:
  std::string path_;
  std::unique_ptr<zip, DiscardArchive> archive_;
};

}  // namespace weft
