#include "base/file_system.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft {
namespace {

FileKind kind_of(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return FileKind::regular;
  if (S_ISDIR(status.st_mode)) return FileKind::folder;
  return FileKind::other;
}

class HostFileSystem final : public FileSystem {
 public:
  int inspect(const std::string& path, FileKind& kind) const override {
    struct stat status;
    if (::stat(path.c_str(), &status) == 0) {
      kind = kind_of(status);
      return 0;
    }
    if (errno != ENOENT) return -1;
    kind = FileKind::missing;
    return 0;
  }

  std::string resolve(const std::string& path) const override {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    return resolved ? resolved.get() : "";
  }

  int open_to_read(const std::string& path) const override { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }

  int open_to_write(const std::string& path) const override { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); }

  int create(const std::string& path) const override {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }

  std::int64_t size(int descriptor, FileKind& kind) const override {
    struct stat status;
    if (::fstat(descriptor, &status) != 0) return -1;
    kind = kind_of(status);
    return kind == FileKind::regular ? status.st_size : 0;
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
  int make_folder(const std::string& path) const override { return ::mkdir(path.c_str(), 0777); }

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
