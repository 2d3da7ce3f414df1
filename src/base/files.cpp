#include "base/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/interruption.h"
#include "base/mapped_files.h"
#include "base/text.h"

namespace weft {
namespace {

bool is_fault_of_the_path(int error) {
  switch (error) {
    // The folder has no room, so the path is at fault.
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

// Throws for the current errno. `what` is the operation on the path that failed.
[[noreturn]] void fail_on(const std::string& path, std::string_view what) {
  const int error = errno;
  const std::string reason = system_error_text();
  if (is_fault_of_the_path(error)) fail_user("[{}] cannot {}: {}", quote(path, 1000), what, reason);
  fail_device("[{}] cannot {}: {}", quote(path, 1000), what, reason);
}

// The system would end a name at a null byte and open another file.
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

FileStatus inspected(const FileSystem& file_system, const std::string& path, std::string_view what) {
  FileStatus status;
  if (file_system.inspect(path, status) != 0) fail_on(path, what);
  return status;
}

int open_existing(const FileSystem& file_system, const std::string& path) {
  check_path(path);
  const FileKind kind = inspected(file_system, path, "open").kind;
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

// The beginning and the end of the name of a temporary file. The process and attempt numbers are between them.
constexpr std::string_view kTemporaryStart = ".weft-", kTemporaryEnd = ".tmp";

// A new file in the target's folder. The destructor removes it unless it was renamed.
class TemporaryFile {
 public:
  // `folder` is empty or ends in a slash. Errors name the path `what`.
  TemporaryFile(const FileSystem& file_system, const std::string& folder, mode_t mode, const std::string& what)
      : file_system_(file_system), what_(what) {
    // The file is in the target's folder because a rename cannot move it to another file system. The process number
    // separates processes, the attempt separates threads. Names that a killed process left are skipped.
    for (int attempt = 0; descriptor_ < 0 && attempt < kMostAttempts; ++attempt) {
      path_ = fmt::format("{}{}{}-{}{}", folder, kTemporaryStart, ::getpid(), attempt, kTemporaryEnd);
      descriptor_ = repeat_while_interrupted([&] { return file_system_.create(path_, mode); });
      if (descriptor_ < 0 && errno != EEXIST) break;
    }
    if (descriptor_ < 0) fail_on(what_, "write");
    unfinished_.emplace(path_);
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) file_system_.close(descriptor_);
    if (!path_.empty()) file_system_.remove(path_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view bytes) { write_all(file_system_, descriptor_, what_, bytes); }

  // Closes the file, so nothing can be written after this.
  void rename_to(const std::string& target) {
    // Without the sync, a rename may reach the disk before the bytes do, and a crash would leave an empty file under
    // the name.
    if (repeat_while_interrupted([&] { return file_system_.sync(descriptor_); }) != 0) fail_on(what_, "write");
    if (file_system_.close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail_on(what_, "write");
    if (file_system_.rename(path_, target) != 0) fail_on(what_, "write");
    unfinished_.reset();
    path_.clear();
  }

 private:
  static constexpr int kMostAttempts = 10000;

  const FileSystem& file_system_;
  std::string what_;
  std::string path_;
  std::optional<UnfinishedPath> unfinished_;
  int descriptor_ = -1;
};

void make_folder(const FileSystem& file_system, const std::string& path, mode_t mode) {
  if (file_system.make_folder(path, mode) == 0) return;
  const int error = errno;
  // If the folder exists, the error depends on the system (EEXIST, EROFS, EACCES at "/"), so check the path itself.
  FileStatus status;
  if (file_system.inspect(path, status) == 0 && status.kind == FileKind::folder) return;
  errno = error;
  fail_on(path, "make the folder");
}

void write_directly(const FileSystem& file_system, const std::string& path, std::string_view bytes) {
  Descriptor file(file_system, repeat_while_interrupted([&] { return file_system.open_to_write(path); }));
  if (file.number() < 0) fail_on(path, "write");
  write_all(file_system, file.number(), path, bytes);
  if (file.close() != 0 && errno != EINTR) fail_on(path, "write");
}

}  // namespace

MappedFile::MappedFile(const std::string& path, const FileSystem& file_system) : path_(path) {
  // The kind is checked before opening, because opening a pipe would wait for its other end.
  FileStatus before;
  check_path(path);
  if (file_system.inspect(path, before) == 0) check_regular(path, before.kind);
  const Descriptor file(file_system, open_existing(file_system, path));
  if (file_system.inspect_open(file.number(), status_) != 0) fail_on(path, "read its size");
  check_regular(path, status_.kind);
  USER_CHECK(status_.bytes > 0, "[{}] is empty", quote(path, 1000));
  const auto count = static_cast<std::size_t>(status_.bytes);
  const std::byte* start = file_system.map(file.number(), count);
  if (start == nullptr) fail_on(path, "map");
  bytes_ = {start, count};
  remember_mapping(bytes_, path_);
}

MappedFile::~MappedFile() { unmap(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), status_(other.status_), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  path_ = std::move(other.path_);
  status_ = other.status_;
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

void MappedFile::unmap() noexcept {
  if (bytes_.empty()) return;
  forget_mapping(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
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
  // The hint is optional: callers do not depend on it, so its failure is ignored.
  (void)::madvise(const_cast<std::byte*>(bytes_.data()) + first, end - first, advice);
}

std::string read_file(const std::string& path, std::size_t most_bytes, const FileSystem& file_system) {
  const Descriptor file(file_system, open_existing(file_system, path));
  FileStatus status;
  if (file_system.inspect_open(file.number(), status) != 0) fail_on(path, "read its size");
  const auto check_size = [&](std::uint64_t count) {
    USER_CHECK(count <= most_bytes, "[{}] wanted at most {} bytes, but it has {}{}", quote(path, 1000), most_bytes,
               status.kind == FileKind::regular ? "" : "at least ", count);
  };
  check_size(static_cast<std::uint64_t>(status.bytes));

  // One byte more than the reported size detects the end of the file without another growth. More of them save readers
  // of JSON a copy, because they read beyond the end. Files in /proc report 0.
  constexpr std::size_t kLeastStep = 64 * 1024, kTail = 64;
  std::string bytes;
  std::size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) {
      bytes.resize(std::max({filled + kLeastStep, filled * 2, static_cast<std::size_t>(status.bytes) + kTail}));
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
  const FileKind kind = inspected(file_system, path, "write").kind;
  USER_CHECK(kind != FileKind::folder, "[{}] cannot write: it is a folder", quote(path, 1000));
  if (kind == FileKind::other) return write_directly(file_system, path, bytes);
  std::string target = path;
  if (kind == FileKind::regular) {
    target = file_system.resolve(path);
    if (target.empty()) fail_on(path, "write");
  }
  TemporaryFile temporary(file_system, target.substr(0, target.rfind('/') + 1), 0666, target);
  temporary.write(bytes);
  temporary.rename_to(target);
}

void write_then_rename(const std::string& path, std::span<const std::byte> bytes, const FileSystem& file_system) {
  write_then_rename(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), file_system);
}

void write_private_then_rename(const std::string& folder, const std::string& name,
                               std::span<const std::span<const std::byte>> parts, const FileSystem& file_system) {
  check_path(folder);
  TemporaryFile temporary(file_system, folder + "/", 0600, folder);
  for (const std::span<const std::byte> part : parts)
    temporary.write(std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
  temporary.rename_to(folder + "/" + name);
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTemporaryStart) && name.ends_with(kTemporaryEnd);
}

void make_folders(const std::string& path, const FileSystem& file_system) {
  check_path(path);
  std::size_t end = 0;
  while (end != std::string::npos) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    make_folder(file_system, part, 0777);
  }
}

void make_private_folder(const std::string& path, const FileSystem& file_system) {
  check_path(path);
  const std::size_t last = path.find_last_not_of('/');
  const std::size_t end = last == std::string::npos ? last : path.find_last_of('/', last);
  if (end != std::string::npos && end > 0) make_folders(path.substr(0, end), file_system);
  make_folder(file_system, path, 0700);
}

FileStatus file_status(const std::string& path, const FileSystem& file_system) {
  check_path(path);
  return inspected(file_system, path, "look at it");
}

std::vector<std::string> folder_names(const std::string& path, const FileSystem& file_system) {
  check_path(path);
  std::vector<std::string> names;
  if (file_system.list(path, names) != 0) fail_on(path, "list it");
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

std::string user_folder(const EnvironmentLookup& environment, const char* variable) {
  const std::optional<std::string> cache = environment("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) return *cache + "/weft";
  const std::optional<std::string> home = environment("HOME");
  if (home && !home->empty()) return *home + "/.cache/weft";
  USER_CHECK(
      !cache || cache->empty(),
      "[cache] wanted a folder in {}, XDG_CACHE_HOME or HOME, but XDG_CACHE_HOME is the relative path {}, and the "
      "others are not set",
      variable, quote(*cache));
  fail_user("[cache] wanted a folder in {}, XDG_CACHE_HOME or HOME, but none of them is set", variable);
}

}  // namespace

std::string cache_folder(const EnvironmentLookup& environment) {
  constexpr const char* kRoot = "WEFT_CACHE_ROOT";
  const std::optional<std::string> root = environment(kRoot);
  return root && !root->empty() ? *root : user_folder(environment, kRoot);
}

std::string models_folder(const EnvironmentLookup& environment) {
  constexpr const char* kRoot = "WEFT_MODELS_ROOT";
  const std::optional<std::string> root = environment(kRoot);
  return root && !root->empty() ? *root : user_folder(environment, kRoot) + "/models";
}

}  // namespace weft
