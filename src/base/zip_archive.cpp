#include "base/zip_archive.h"

#include <utility>

#include <zip.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

constexpr std::size_t kLongestPath = 1000;  // in messages
constexpr std::size_t kHeaderBytes = 30;    // before the name of a member

zip_t* open_archive(const std::string& path, int flags) {
  int code = 0;
  if (zip_t* archive = zip_open(path.c_str(), flags, &code)) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail_user("[{}] cannot be opened as an archive: {}", quote(path, kLongestPath), reason);
}

}  // namespace

void DiscardArchive::operator()(zip* archive) const { zip_discard(archive); }

ZipWriter::ZipWriter(std::string path)
    : path_(std::move(path)), archive_(open_archive(path_, ZIP_CREATE | ZIP_TRUNCATE)) {}

std::uint64_t ZipWriter::add_member(const std::string& name, std::span<const std::byte> bytes) {
  zip_source_t* source = zip_source_buffer(archive_.get(), bytes.data(), bytes.size(), 0);
  if (source == nullptr) fail_device("[{}] {}: {}", quote(path_, kLongestPath), name, zip_strerror(archive_.get()));
  const zip_int64_t index = zip_file_add(archive_.get(), name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    fail_device("[{}] {}: {}", quote(path_, kLongestPath), name, zip_strerror(archive_.get()));
  }
  const auto member = static_cast<zip_uint64_t>(index);
  // 1980-01-01, the first day there is: when it was packed is no part of the content.
  zip_file_set_dostime(archive_.get(), member, 0, 1 << 5 | 1, 0);
  return member;
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  constexpr int kFastest = 1;
  zip_set_file_compression(archive_.get(), add_member(name, bytes), ZIP_CM_DEFLATE, kFastest);
}

void ZipWriter::add_mappable(const std::string& name, std::span<const std::byte> bytes) {
  CHECK(zip_get_num_entries(archive_.get(), 0) == 0, "[{}] {} is not the first member", path_, name);
  const zip_uint64_t member = add_member(name, bytes);
  zip_set_file_compression(archive_.get(), member, ZIP_CM_STORE, 0);
  // A field of zeros between the header and the bytes, of the kind that Android's zipalign made known.
  constexpr std::size_t kPage = 4096, kFieldHeaderBytes = 4;
  constexpr zip_uint16_t kPadding = 0xd935;
  const std::size_t before = kHeaderBytes + name.size() + kFieldHeaderBytes;
  const std::vector<zip_uint8_t> zeros((kPage - before % kPage) % kPage, 0);
  const int failed = zip_file_extra_field_set(archive_.get(), member, kPadding, ZIP_EXTRA_FIELD_NEW, zeros.data(),
                                              static_cast<zip_uint16_t>(zeros.size()), ZIP_FL_LOCAL);
  if (failed != 0) fail_device("[{}] {}: {}", quote(path_, kLongestPath), name, zip_strerror(archive_.get()));
}

void ZipWriter::write() {
  if (zip_close(archive_.get()) != 0)
    fail_user("[{}] cannot be written: {}", quote(path_, kLongestPath), zip_strerror(archive_.get()));
  archive_.release();
}

ZipReader::ZipReader(std::string path)
    : path_(std::move(path)), archive_(open_archive(path_, ZIP_RDONLY | ZIP_CHECKCONS)) {}

std::vector<std::string> ZipReader::names() const {
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t index = 0; index < count; ++index) {
    const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(index), ZIP_FL_ENC_GUESS);
    names.emplace_back(name == nullptr ? "" : name);
  }
  return names;
}

// Piece by piece, so that a size that is claimed takes no memory.
std::vector<std::byte> ZipReader::read(std::size_t index, std::size_t most_bytes) const {
  const std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(archive_.get(), index, 0));
  if (!member) fail_user("{}", zip_strerror(archive_.get()));
  constexpr std::size_t kPiece = std::size_t{128} << 10;
  std::vector<std::byte> bytes;
  while (true) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kPiece);
    const zip_int64_t count = zip_fread(member.get(), bytes.data() + before, kPiece);
    if (count < 0) fail_user("{}", zip_error_strerror(zip_file_get_error(member.get())));
    bytes.resize(before + static_cast<std::size_t>(count));
    if (count == 0) return bytes;
    USER_CHECK(bytes.size() <= most_bytes, "it has more than {} bytes", most_bytes);
  }
}

FilePart ZipReader::place_of_first() const {
  const std::string where = quote(path_, kLongestPath);
  zip_stat_t facts;
  USER_CHECK(zip_stat_index(archive_.get(), 0, 0, &facts) == 0, "[{}] has no member", where);
  const MappedFile file(path_);
  const std::span<const std::byte> bytes = file.bytes();
  const bool is_plain = facts.comp_method == ZIP_CM_STORE && facts.size == facts.comp_size;
  USER_CHECK(is_plain && bytes.size() >= kHeaderBytes, "[{}] has its first member packed, which cannot be mapped",
             where);
  const auto number = [&](std::size_t at) {
    return std::to_integer<std::size_t>(bytes[at]) | std::to_integer<std::size_t>(bytes[at + 1]) << 8;
  };
  constexpr std::size_t kNameLength = 26, kFieldsLength = 28;
  const std::size_t offset = kHeaderBytes + number(kNameLength) + number(kFieldsLength);
  USER_CHECK(offset <= bytes.size() && facts.size <= bytes.size() - offset, "[{}] ends before its first member does",
             where);
  return {.offset = offset, .bytes = static_cast<std::size_t>(facts.size)};
}

}  // namespace weft
