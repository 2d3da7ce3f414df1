#include "cache/cache_archive.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <zip.h>

#include "base/error.h"
#include "base/text.h"
#include "cache/entry_file.h"

namespace weft {
namespace {

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

Archive open_archive(const std::string& path, int flags) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail_user("[{}] cannot be opened as an archive: {}", quote(path, 1000), reason);
}

// `bytes` must stay until the archive is closed.
void add_member(zip_t* archive, const std::string& name, std::span<const std::byte> bytes) {
  zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  if (source == nullptr) fail_device("[cache export] {}: {}", name, zip_strerror(archive));
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    fail_device("[cache export] {}: {}", name, zip_strerror(archive));
  }
  const auto member = static_cast<zip_uint64_t>(index);
  constexpr int kFastest = 1;
  zip_set_file_compression(archive, member, ZIP_CM_DEFLATE, kFastest);
  // 1980-01-01, the first day there is: when it was packed is no part of the content.
  zip_file_set_dostime(archive, member, 0, 1 << 5 | 1, 0);
}

// Everything that the member holds. What it claims about itself is not relied on: the bytes are read piece by piece,
// and no more of them than `most_bytes`. UserError with the reason.
std::vector<std::byte> read_member(zip_t* archive, zip_uint64_t index, std::size_t most_bytes) {
  const std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(archive, index, 0));
  if (!member) fail_user("{}", zip_strerror(archive));
  constexpr std::size_t kPiece = std::size_t{1} << 20;
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

std::string member_name(zip_t* archive, zip_uint64_t index) {
  const char* name = zip_get_name(archive, index, ZIP_FL_ENC_GUESS);
  return name == nullptr ? fmt::format("member {}", index) : name;
}

}  // namespace

CacheExport export_cache(const CompileCache& cache, const std::string& path) {
  CacheExport result;
  std::vector<MappedFile> files;  // read when the archive is closed
  Archive archive = open_archive(path, ZIP_CREATE | ZIP_TRUNCATE);
  for (const CacheListing& listing : cache.list(CompileCache::Read::everything)) {
    if (!listing.problem.empty()) {
      result.problems.push_back(listing.problem);
      continue;
    }
    files.emplace_back(listing.path);
    add_member(archive.get(), listing.kind + "/" + listing.hash, files.back().bytes());
    ++result.entries;
  }
  USER_CHECK(result.entries > 0, "[cache export] there is no entry in {}", quote(cache.root(), 1000));
  if (zip_close(archive.get()) != 0)
    fail_user("[{}] cannot be written: {}", quote(path, 1000), zip_strerror(archive.get()));
  archive.release();
  return result;
}

CacheImport import_cache(CompileCache& cache, const std::string& path) {
  USER_CHECK(cache.enabled(), "[cache import] the cache is disabled");
  CacheImport result;
  const Archive archive = open_archive(path, ZIP_RDONLY);
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_uint64_t index = 0; index < static_cast<zip_uint64_t>(std::max<zip_int64_t>(count, 0)); ++index) {
    const std::string name = member_name(archive.get(), index);
    try {
      const std::vector<std::byte> bytes =
          read_member(archive.get(), index, static_cast<std::size_t>(cache.most_bytes()));
      const EntryFile entry = parse_entry(bytes, name);
      check_payload(entry, name);
      USER_CHECK(cache.store(entry.key, entry.payload), "it could not be stored");
      ++result.entries;
    } catch (const BadEntry& error) {
      result.problems.push_back(error.what());
    } catch (const UserError& error) {
      result.problems.push_back(fmt::format("[{}] {}", quote(name, 1000), error.what()));
    }
  }
  return result;
}

}  // namespace weft
