#include "base/zip_archive.h"

#include <algorithm>
#include <utility>

#include <zip.h>

#include "base/error.h"
#include "base/interruption.h"
#include "base/text.h"

namespace weft {
namespace {

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

constexpr std::size_t kLongestPath = 1000;  // in an error message
constexpr std::uint64_t kMostShortSize = 0xffffffff;

// The header of a member: the number of bytes before the name, and the offsets of its fields.
constexpr std::size_t kHeaderBytes = 30, kFlags = 6, kNameLength = 26, kFieldsLength = 28;

zip_t* open_archive(const std::string& path, int flags) {
  int code = 0;
  if (zip_t* archive = zip_open(path.c_str(), flags, &code)) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail_user("[{}] cannot be opened as an archive: {}", quote(path, kLongestPath), reason);
}

std::size_t short_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::size_t>(bytes[at]) | std::to_integer<std::size_t>(bytes[at + 1]) << 8;
}

// Whether an unencrypted member begins here whose header contains the sizes.
bool begins_member(std::span<const std::byte> bytes) {
  constexpr std::byte kBeginning[] = {std::byte{'P'}, std::byte{'K'}, std::byte{3}, std::byte{4}};
  constexpr std::size_t kEncrypted = 1 << 0, kSizesBehind = 1 << 3;
  return std::ranges::equal(bytes.first(sizeof kBeginning), kBeginning) &&
         (short_at(bytes, kFlags) & (kEncrypted | kSizesBehind)) == 0;
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
  // Sets 1980-01-01, the earliest possible date, so that the archive does not depend on the time of packing.
  zip_file_set_dostime(archive_.get(), member, 0, 1 << 5 | 1, 0);
  return member;
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  constexpr int kFastest = 1;
  zip_set_file_compression(archive_.get(), add_member(name, bytes), ZIP_CM_DEFLATE, kFastest);
}

void ZipWriter::add_mappable(const std::string& name, std::span<const std::byte> bytes) {
  CHECK(zip_get_num_entries(archive_.get(), 0) == mappable_count_, "[{}] {} follows a member that is compressed", path_,
        name);
  const zip_uint64_t member = add_member(name, bytes);
  zip_set_file_compression(archive_.get(), member, ZIP_CM_STORE, 0);
  // The padding is an extra field of zeros between the header and the bytes, of the kind that Android's zipalign uses.
  // Sizes of more than 32 bits need another extra field.
  constexpr std::uint64_t kPage = 4096, kFieldHeaderBytes = 4, kLongSizesBytes = 20;
  constexpr zip_uint16_t kPadding = 0xd935;
  const std::uint64_t before = mappable_end_ + kHeaderBytes + name.size() + kFieldHeaderBytes +
                               (bytes.size() > kMostShortSize ? kLongSizesBytes : 0);
  const std::vector<zip_uint8_t> zeros((kPage - before % kPage) % kPage, 0);
  const int failed = zip_file_extra_field_set(archive_.get(), member, kPadding, ZIP_EXTRA_FIELD_NEW, zeros.data(),
                                              static_cast<zip_uint16_t>(zeros.size()), ZIP_FL_LOCAL);
  if (failed != 0) fail_device("[{}] {}: {}", quote(path_, kLongestPath), name, zip_strerror(archive_.get()));
  ++mappable_count_;
  mappable_end_ = before + zeros.size() + bytes.size();
}

// The library writes a temporary file of its own, which it removes if it is cancelled.
void ZipWriter::write() {
  const InterruptionLater later;
  zip_register_cancel_callback_with_state(
      archive_.get(), [](zip_t*, void*) { return InterruptionLater::is_pending() ? 1 : 0; }, nullptr, nullptr);
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

// Reads in pieces, so that a false size in the header cannot cause a large allocation.
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

// The members follow each other without gaps.
std::vector<FilePart> ZipReader::places_of_first(std::size_t count) const {
  const std::string where = quote(path_, kLongestPath);
  const MappedFile file(path_);
  const std::span<const std::byte> bytes = file.bytes();
  std::vector<FilePart> places;
  std::size_t at = 0;
  for (std::size_t index = 0; index < count; ++index) {
    zip_stat_t facts;
    USER_CHECK(zip_stat_index(archive_.get(), index, 0, &facts) == 0, "[{}] has no member {}", where, index);
    const std::string name = quote(facts.name == nullptr ? "" : facts.name);
    USER_CHECK(facts.comp_method == ZIP_CM_STORE && facts.size == facts.comp_size,
               "[{}] has the member {} packed, which cannot be mapped", where, name);
    USER_CHECK(at <= bytes.size() && bytes.size() - at >= kHeaderBytes && begins_member(bytes.subspan(at)),
               "[{}] wanted the member {} at byte {}, but it is not there as it is", where, name, at);
    const std::size_t offset =
        at + kHeaderBytes + short_at(bytes, at + kNameLength) + short_at(bytes, at + kFieldsLength);
    USER_CHECK(offset <= bytes.size() && facts.size <= bytes.size() - offset, "[{}] ends before its member {} does",
               where, name);
    places.push_back({.offset = offset, .bytes = static_cast<std::size_t>(facts.size)});
    at = offset + static_cast<std::size_t>(facts.size);
  }
  return places;
}

}  // namespace weft
