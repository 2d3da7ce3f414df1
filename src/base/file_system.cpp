#include "base/file_system.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft {
namespace {

FileStatus status_of(const struct stat& found) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  FileStatus status;
  status.kind = S_ISREG(found.st_mode)   ? FileKind::regular
                : S_ISDIR(found.st_mode) ? FileKind::folder
                                         : FileKind::other;
  status.bytes = status.kind == FileKind::regular ? found.st_size : 0;
  status.owner = found.st_uid;
  status.mode = found.st_mode & 07777;
  status.modified = found.st_mtim.tv_sec * kNanoseconds + found.st_mtim.tv_nsec;
  return status;
}

class HostFileSystem final : public FileSystem {
 public:
  int inspect(const std::string& path, FileStatus& status) const override {
    struct stat found;
    if (::stat(path.c_str(), &found) == 0) {
      status = status_of(found);
      return 0;
    }
    if (errno != ENOENT) return -1;
    status = {};
    return 0;
  }

  std::string resolve(const std::string& path) const override {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    return resolved ? resolved.get() : "";
  }

  int open_to_read(const std::string& path) const override { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }

  int open_to_write(const std::string& path) const override { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); }

  int create(const std::string& path, mode_t mode) const override {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  }

  int inspect_open(int descriptor, FileStatus& status) const override {
    struct stat found;
    if (::fstat(descriptor, &found) != 0) return -1;
    status = status_of(found);
    return 0;
  }

  ssize_t read(int descriptor, void* bytes, std::size_t count) const override {
    return ::read(descriptor, bytes, count);
  }

  ssize_t write(int descriptor, const void* bytes, std::size_t count) const override {
    return ::write(descriptor, bytes, count);
  }

  int sync(int descriptor) const override { return ::fsync(descriptor); }
  int close(int descriptor) const override { return ::close(descriptor); }

  int rename(const std::string& from, const std::string& to) const override {
    return std::rename(from.c_str(), to.c_str());
  }

  int remove(const std::string& path) const override { return ::unlink(path.c_str()); }
  int make_folder(const std::string& path, mode_t mode) const override { return ::mkdir(path.c_str(), mode); }

  int touch(const std::string& path) const override {
    const struct timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = 0, .tv_nsec = UTIME_NOW}};
    return ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  }

  int list(const std::string& path, std::vector<std::string>& names) const override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
    if (!folder) return -1;
    while (true) {
      errno = 0;  // so that the end differs from a failure
      const struct dirent* entry = ::readdir(folder.get());
      if (entry == nullptr) return errno == 0 ? 0 : -1;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
  }

  const std::byte* map(int descriptor, std::size_t count) const override {
    void* start = ::mmap(nullptr, count, PROT_READ, MAP_PRIVATE, descriptor, 0);
    return start == MAP_FAILED ? nullptr : static_cast<const std::byte*>(start);
  }
};

}  // namespace

const FileSystem& host_file_system() {
  static const HostFileSystem file_system;
  return file_system;
}

}  // namespace weft
