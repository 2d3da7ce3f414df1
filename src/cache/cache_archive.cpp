#include "cache/cache_archive.h"

#include "base/error.h"
#include "base/text.h"
#include "base/zip_archive.h"
#include "cache/entry_file.h"

namespace weft {

CacheExport export_cache(const CompileCache& cache, const std::string& path) {
  CacheExport result;
  std::vector<MappedFile> files;  // read when the archive is closed
  ZipWriter archive(path);
  for (const CacheListing& listing : cache.list(CompileCache::Read::everything)) {
    if (!listing.problem.empty()) {
      result.problems.push_back(listing.problem);
      continue;
    }
    files.emplace_back(listing.path);
    archive.add(listing.kind + "/" + listing.hash, files.back().bytes());
    ++result.entries;
  }
  USER_CHECK(result.entries > 0, "[cache export] there is no entry in {}", quote(cache.root(), 1000));
  archive.write();
  return result;
}

CacheImport import_cache(CompileCache& cache, const std::string& path) {
  USER_CHECK(cache.enabled(), "[cache import] the cache is disabled");
  CacheImport result;
  const ZipReader archive(path);
  const std::vector<std::string> names = archive.names();
  for (std::size_t index = 0; index < names.size(); ++index) {
    const std::string& name = names[index];
    try {
      const std::vector<std::byte> bytes = archive.read(index, static_cast<std::size_t>(cache.most_bytes()));
      const EntryFile entry = parse_entry(bytes, name);
      check_payload(entry, name);
      USER_CHECK(cache.store(entry.key, entry.payload), "it could not be stored");
      ++result.entries;
    } catch (const BadEntry& error) {
      result.problems.push_back(error.what());
    } catch (const UserError& error) {
      result.problems.push_back(
          fmt::format("[{}] {}", name.empty() ? fmt::format("member {}", index) : quote(name, 1000), error.what()));
    }
  }
  return result;
}

}  // namespace weft
