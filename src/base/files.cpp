#include "base/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

bool is_fault_of_the_path(int error) {
  switch (error) {
    // The folder that was named has no room.
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG:
    case EEXIST:
    case EINVAL:
    case ENXIO:
    case ENOTEMPTY:
    case ETXTBSY:
      return true;
    default:
      return false;
  }
}

// Of the current errno, for what could not be done to the path.
[[noreturn]] void fail_on(const std::string& path, std::string_view what) {
  const int error = errno;
  const std::string reason = system_error_text();
  if (is_fault_of_the_path(error)) fail_user("[{}] cannot {}: {}", quote(path, 1000), what, reason);
  fail_device("[{}] cannot {}: {}", quote(path, 1000), what, reason);
}

// A null byte would end the name early for the system and open another file.
void check_path(const std::string& path) {
  USER_CHECK(!path.empty(), "[file] wanted a path, but it is empty");
  USER_CHECK(path.find('\0') == std::string::npos, "[{}] is not a path: it holds a null byte", quote(path));
}

void check_regular(const std::string& path, FileKind kind) {
  USER_CHECK(kind != FileKind::other, "[{}] wanted a regular file, but it is a device or pipe", quote(path, 1000));
}

class Descriptor {
 public:
  Descriptor(const FileSystem& file_system, int number) : file_system_(file_system), number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) file_system_.close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  int close() { return file_system_.close(std::exchange(number_, -1)); }

 private:
  const FileSystem& file_system_;
  int number_;
};

template <class Call>
auto repeat_while_interrupted(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

int open_existing(const FileSystem& file_system, const std::string& path) {
  check_path(path);
  FileKind kind = FileKind::missing;
  if (file_system.inspect(path, kind) != 0) fail_on(path, "open");
  USER_CHECK(kind != FileKind::missing, "[{}] cannot open: no such file or folder", quote(path, 1000));
  USER_CHECK(kind != FileKind::folder, "[{}] wanted a file, but it is a folder", quote(path, 1000));
  const int descriptor = repeat_while_interrupted([&] { return file_system.open_to_read(path); });
  if (descriptor < 0) fail_on(path, "open");
  return descriptor;
}

void write_all(const FileSystem& file_system, int descriptor, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        repeat_while_interrupted([&] { return file_system.write(descriptor, bytes.data(), bytes.size()); });
    if (written < 0) fail_on(path, "write");
    if (written == 0) fail_user("[{}] cannot write: the system took no more bytes", quote(path, 1000));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// A new file beside the target; removed again unless kept.
class TemporaryFile {
 public:
  TemporaryFile(const FileSystem& file_system, const std::string& target) : file_system_(file_system) {
    // In the target's folder, because a rename cannot leave its file system. The process number keeps processes apart,
    // the attempt threads; what a killed process left is stepped over.
    const std::string folder = target.substr(0, target.rfind('/') + 1);
    for (int attempt = 0; descriptor_ < 0 && attempt < kMostAttempts; ++attempt) {
      path_ = fmt::format("{}.weft-{}-{}.tmp", folder, ::getpid(), attempt);
      descriptor_ = repeat_while_interrupted([&] { return file_system_.create(path_); });
      if (descriptor_ < 0 && errno != EEXIST) break;
    }
    if (descriptor_ < 0) fail_on(target, "write");
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) file_system_.close(descriptor_);
    if (!path_.empty()) file_system_.remove(path_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const std::string& target, std::string_view bytes) {
    write_all(file_system_, descriptor_, target, bytes);
    // A rename may reach the disk before the bytes do; then a crash would leave an empty file under the name.
    if (repeat_while_interrupted([&] { return file_system_.sync(descriptor_); }) != 0) fail_on(target, "write");
    if (file_system_.close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail_on(target, "write");
  }

  void rename_to(const std::string& target) {
    if (file_system_.rename(path_, target) != 0) fail_on(target, "write");
    path_.clear();
  }

 private:
  static constexpr int kMostAttempts = 10000;

  const FileSystem& file_system_;
  std::string path_;
  int descriptor_ = -1;
};

void write_directly(const FileSystem& file_system, const std::string& path, std::string_view bytes) {
  Descriptor file(file_system, repeat_while_interrupted([&] { return file_system.open_to_write(path); }));
  if (file.number() < 0) fail_on(path, "write");
  write_all(file_system, file.number(), path, bytes);
  if (file.close() != 0 && errno != EINTR) fail_on(path, "write");
}

}  // namespace

MappedFile::MappedFile(const std::string& path, const FileSystem& file_system) : path_(path) {
  // Looked at before it is opened: opening a pipe would wait for its other end.
  FileKind before = FileKind::regular;
  check_path(path);
  if (file_system.inspect(path, before) == 0) check_regular(path, before);
  const Descriptor file(file_system, open_existing(file_system, path));
  FileKind kind = FileKind::other;
  const std::int64_t size = file_system.size(file.number(), kind);
  if (size < 0) fail_on(path, "read its size");
  check_regular(path, kind);
  USER_CHECK(size > 0, "[{}] is empty", quote(path, 1000));
  const auto count = static_cast<std::size_t>(size);
  const std::byte* start = file_system.map(file.number(), count);
  if (start == nullptr) fail_on(path, "map");
  bytes_ = {start, count};
}

MappedFile::~MappedFile() { unmap(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  path_ = std::move(other.path_);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

void MappedFile::unmap() noexcept {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  bytes_ = {};
}

void MappedFile::will_need(std::size_t offset, std::size_t byte_count) const {
  advise(offset, byte_count, MADV_WILLNEED);
}

void MappedFile::drop(std::size_t offset, std::size_t byte_count) const { advise(offset, byte_count, MADV_DONTNEED); }

void MappedFile::advise(std::size_t offset, std::size_t byte_count, int advice) const {
  if (offset >= bytes_.size() || byte_count == 0) return;
  const std::size_t end = offset + std::min(byte_count, bytes_.size() - offset);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = offset / page * page;
  // A refused hint changes nothing that the caller relies on.
  (void)::madvise(const_cast<std::byte*>(bytes_.data()) + first, end - first, advice);
}

std::string read_file(const std::string& path, std::size_t most_bytes, const FileSystem& file_system) {
  const Descriptor file(file_system, open_existing(file_system, path));
  FileKind kind = FileKind::other;
  const std::int64_t size = file_system.size(file.number(), kind);
  if (size < 0) fail_on(path, "read its size");
  const auto check_size = [&](std::uint64_t count) {
    USER_CHECK(count <= most_bytes, "[{}] wanted at most {} bytes, but it has {}{}", quote(path, 1000), most_bytes,
               kind == FileKind::regular ? "" : "at least ", count);
  };
  check_size(static_cast<std::uint64_t>(size));

  // One byte more than expected tells the end of the file without a second growth. Files in /proc say 0.
  constexpr std::size_t kLeastStep = 64 * 1024;
  std::string bytes;
  std::size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) {
      bytes.resize(std::max({filled + kLeastStep, filled * 2, static_cast<std::size_t>(size) + 1}));
    }
    const ssize_t count = repeat_while_interrupted(
        [&] { return file_system.read(file.number(), bytes.data() + filled, bytes.size() - filled); });
    if (count < 0) fail_on(path, "read");
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
    check_size(filled);
  }
  bytes.resize(filled);
  return bytes;
}

void write_then_rename(const std::string& path, std::string_view bytes, const FileSystem& file_system) {
  check_path(path);
  FileKind kind = FileKind::missing;
  if (file_system.inspect(path, kind) != 0) fail_on(path, "write");
  USER_CHECK(kind != FileKind::folder, "[{}] cannot write: it is a folder", quote(path, 1000));
  if (kind == FileKind::other) return write_directly(file_system, path, bytes);
  std::string target = path;
  if (kind == FileKind::regular) {
    target = file_system.resolve(path);
    if (target.empty()) fail_on(path, "write");
  }
  TemporaryFile temporary(file_system, target);
  temporary.write(target, bytes);
  temporary.rename_to(target);
}

void write_then_rename(const std::string& path, std::span<const std::byte> bytes, const FileSystem& file_system) {
  write_then_rename(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), file_system);
}

void make_folders(const std::string& path, const FileSystem& file_system) {
  check_path(path);
  std::size_t end = 0;
  while (end != std::string::npos) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (file_system.make_folder(part) == 0) continue;
    const int error = errno;
    FileKind kind = FileKind::missing;
    // The system's answer for a folder that exists varies (EEXIST, EROFS, EACCES at "/"), so look.
    if (file_system.inspect(part, kind) == 0 && kind == FileKind::folder) continue;
    errno = error;
    fail_on(part, "make the folder");
  }
}

std::string cache_folder(const EnvironmentLookup& environment) {
  const std::optional<std::string> root = environment("WEFT_CACHE_ROOT");
  if (root && !root->empty()) return *root;
  const std::optional<std::string> cache = environment("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) return *cache + "/weft";
  const std::optional<std::string> home = environment("HOME");
  USER_CHECK(home && !home->empty(),
             "[cache] wanted a folder in WEFT_CACHE_ROOT, XDG_CACHE_HOME or HOME, but none of them is set");
  return *home + "/.cache/weft";
}

}  // namespace weft
