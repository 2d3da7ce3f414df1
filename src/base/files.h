#pragma once

// Reads and writes whole files so that no reader sees a partial file: read-only maps, bounded reads, and writes that
// appear under their name complete or not at all.
//
// Errors name the path. UserError: the path is unusable (missing, a folder, no permission, too large, file system
// full). DeviceError: the system failed (input/output error, out of memory or descriptors).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/file_system.h"

namespace weft {

// A regular, non-empty file that is mapped read-only while this object lives. Pages are loaded on first access. As with
// each mapped file, if another process shrinks the file, access to a lost page ends this process (SIGBUS). Files from
// write_then_rename never shrink.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path, const FileSystem& file_system = host_file_system());
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }
  std::size_t size() const { return bytes_.size(); }
  // Starts on a page boundary.
  std::span<const std::byte> bytes() const { return bytes_; }
  // The status of the file when it was opened.
  const FileStatus& status() const { return status_; }

  // Hints for a part of the file, clipped to the file and widened to whole pages. They never change the content of
  // bytes().
  // will_need: starts reading ahead. drop: the pages stop counting as memory of this process; the next access loads
  // them from the page cache again. Reads near a dropped part may load some of it again, so finish with drop(0,
  // size()).
  void will_need(std::size_t offset, std::size_t byte_count) const;
  void drop(std::size_t offset, std::size_t byte_count) const;

 private:
  void advise(std::size_t offset, std::size_t byte_count, int advice) const;
  void unmap() noexcept;

  std::string path_;
  FileStatus status_;
  std::span<const std::byte> bytes_;
};

// A byte range of a file.
struct FilePart {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// Reads all bytes of a file or pipe. UserError if there are more than `most_bytes`.
std::string read_file(const std::string& path, std::size_t most_bytes,
                      const FileSystem& file_system = host_file_system());

// Writes a file that appears under its name complete and on disk, or not at all: it writes and syncs a new file in the
// same folder and renames it. The folder is not synced, because that takes as long as syncing the file; after a crash
// the path may still have its previous content. On failure the new file is removed and the path is unchanged. Several
// processes may write the same path; one of them wins. A link is followed; a pipe or device (/dev/stdout) is written to
// directly.
void write_then_rename(const std::string& path, std::string_view bytes,
                       const FileSystem& file_system = host_file_system());
void write_then_rename(const std::string& path, std::span<const std::byte> bytes,
                       const FileSystem& file_system = host_file_system());

// The same for a new file that only its owner may read and write. Its content is the concatenation of the parts. It
// replaces any existing entry with that name, including a link. Errors name the folder, not the file.
void write_private_then_rename(const std::string& folder, const std::string& name,
                               std::span<const std::span<const std::byte>> parts,
                               const FileSystem& file_system = host_file_system());

// Whether the functions above use a name of this form before they rename. A file with such a name belongs to a write in
// progress, or a killed process left it.
bool is_temporary_name(std::string_view name);

// Creates the folder and its missing parents. Existing folders are unchanged.
void make_folders(const std::string& path, const FileSystem& file_system = host_file_system());
// The same; if the folder itself is new, only its owner may access it (0700). This does not apply to its parents.
void make_private_folder(const std::string& path, const FileSystem& file_system = host_file_system());

// The status of the path, following links. A missing file is not an error.
FileStatus file_status(const std::string& path, const FileSystem& file_system = host_file_system());

// The names of all entries of a folder, including hidden ones, sorted.
std::vector<std::string> folder_names(const std::string& path, const FileSystem& file_system = host_file_system());

// The folder for this user's compilation and measurement results: WEFT_CACHE_ROOT, else weft in XDG_CACHE_HOME (only if
// absolute, as its specification requires), else ~/.cache/weft. Does not create it. UserError if no variable is set.
std::string cache_folder(const EnvironmentLookup& environment);

// The folder that is searched for models by name: WEFT_MODELS_ROOT, else weft/models in the same locations, independent
// of WEFT_CACHE_ROOT.
std::string models_folder(const EnvironmentLookup& environment);

}  // namespace weft
