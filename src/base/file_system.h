#pragma once

// The system calls that base/files.h uses. They are a class so that a test can make the n-th call fail
// (tests/base/failing_file_system.h); all other code uses host_file_system().
//
// Each call returns the result of the system call and sets `errno` on failure; none throws. The caller must repeat
// interrupted calls (EINTR).

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace weft {

enum class FileKind { missing, regular, folder, other };

struct FileStatus {
  FileKind kind = FileKind::missing;
  std::int64_t bytes = 0;  // 0 unless it is a regular file
  uid_t owner = 0;
  mode_t mode = 0;            // only the permission bits
  std::int64_t modified = 0;  // nanoseconds since 1970
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // The status of the path, following links. -1 on failure other than `missing`.
  virtual int inspect(const std::string& path, FileStatus& status) const = 0;
  // The path with links resolved; empty on failure.
  virtual std::string resolve(const std::string& path) const = 0;

  // A descriptor, or -1.
  virtual int open_to_read(const std::string& path) const = 0;
  virtual int open_to_write(const std::string& path) const = 0;
  // Fails with EEXIST if the path exists. The system applies the process's umask to `mode`.
  virtual int create(const std::string& path, mode_t mode) const = 0;
  // The status of the open file.
  virtual int inspect_open(int descriptor, FileStatus& status) const = 0;
  virtual ssize_t read(int descriptor, void* bytes, std::size_t count) const = 0;
  virtual ssize_t write(int descriptor, const void* bytes, std::size_t count) const = 0;
  virtual int sync(int descriptor) const = 0;
  virtual int close(int descriptor) const = 0;

  virtual int rename(const std::string& from, const std::string& to) const = 0;
  virtual int remove(const std::string& path) const = 0;
  virtual int make_folder(const std::string& path, mode_t mode) const = 0;
  // Sets the time of the last modification to now.
  virtual int touch(const std::string& path) const = 0;
  // Appends the names of all entries of a folder, including hidden ones, in no order. -1 on failure.
  virtual int list(const std::string& path, std::vector<std::string>& names) const = 0;

  // Read-only and private; nullptr on failure.
  virtual const std::byte* map(int descriptor, std::size_t count) const = 0;
};

// The file system of the operating system. It has no state.
const FileSystem& host_file_system();

}  // namespace weft
