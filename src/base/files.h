#pragma once

// Reading and writing whole files so that nothing half-done is ever seen: read-only maps, bounded reads, and writes
// that appear under their name complete or not at all.
//
// Errors name the path. UserError: the path is wrong (missing, a folder, no permission, too large, no room left
// there). DeviceError: the system failed (input/output error, out of memory or descriptors).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/file_system.h"

namespace weft {

// A regular, non-empty file mapped read-only for as long as this object lives. Pages come in when they are touched.
// Shrinking the file from outside while it is mapped ends the process when a lost page is touched (SIGBUS), as for
// every mapped file; files written by write_then_rename never shrink.
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
  // Of what is mapped, as it was when it was opened.
  const FileStatus& status() const { return status_; }

  // Hints for a part of the file, clipped to it and widened to whole pages; never change what bytes() reads.
  // will_need: starts reading ahead. drop: no longer counts the pages as this process's memory; touched again, they
  // come back from the page cache. Reading near a dropped part may bring some of it back, so finish with drop(0,
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

// Bytes of a file from an offset on.
struct FilePart {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// All bytes of a file or pipe. UserError if there are more than `most_bytes`.
std::string read_file(const std::string& path, std::size_t most_bytes,
                      const FileSystem& file_system = host_file_system());

// Writes a file that appears under its name complete and on disk, or not at all: into a new file in the same folder,
// which is then renamed. The name is on disk when the system writes the folder, by itself: where the machine stops
// before, there is what was there, and waiting for it takes as long as for the file. On failure the new file is removed
// and what was at the path stays. Several processes may write one path; one of them wins. A link is followed; a pipe or
// device (/dev/stdout) is written to directly.
void write_then_rename(const std::string& path, std::string_view bytes,
                       const FileSystem& file_system = host_file_system());
void write_then_rename(const std::string& path, std::span<const std::byte> bytes,
                       const FileSystem& file_system = host_file_system());

// The same for a new file that its owner alone may read and write, of parts that follow each other; whatever is under
// the name, a link too, is replaced. Errors name the folder, not the file.
void write_private_then_rename(const std::string& folder, const std::string& name,
                               std::span<const std::span<const std::byte>> parts,
                               const FileSystem& file_system = host_file_system());

// Whether a name is one under which the functions above write before they rename: what is under it belongs to a write
// that goes on, or was left by a process that was killed.
bool is_temporary_name(std::string_view name);

// Makes the folder and those above it. Nothing happens to those that exist.
void make_folders(const std::string& path, const FileSystem& file_system = host_file_system());
// The same, and the folder itself, not those above it, is for its owner alone (0700) where it is new.
void make_private_folder(const std::string& path, const FileSystem& file_system = host_file_system());

// What lies at the path, links followed; nothing there is no error.
FileStatus file_status(const std::string& path, const FileSystem& file_system = host_file_system());

// The names of what is in a folder, hidden ones too, sorted.
std::vector<std::string> folder_names(const std::string& path, const FileSystem& file_system = host_file_system());

// The folder of what this user compiled and measured, not made yet: WEFT_CACHE_ROOT, else weft in XDG_CACHE_HOME (which
// counts only if absolute, as its specification says), else ~/.cache/weft. UserError if none of them is set.
std::string cache_folder(const EnvironmentLookup& environment);

// The folder in which models are looked for by name: WEFT_MODELS_ROOT, else weft/models in the same places, whatever
// WEFT_CACHE_ROOT says.
std::string models_folder(const EnvironmentLookup& environment);

}  // namespace weft
