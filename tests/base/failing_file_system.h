#pragma once

// A file system whose n-th call fails with a given error, while every later call works. Tests increase n from 1 until
// nothing fails any more, and check the files that are left. Calls that cannot be distinguished from a test's own
// (close and remove, which clean up) are passed on and not counted.

#include <cerrno>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace weft {

class FailingFileSystem : public FileSystem {
 public:
  // Call 1 is the first; 0 fails none.
  FailingFileSystem(int failing_call, int error, const FileSystem& real = host_file_system())
      : failing_call_(failing_call), error_(error), real_(real) {}

  // Counted calls so far.
  int calls() const { return calls_; }
  bool has_failed() const { return failing_call_ != 0 && calls_ >= failing_call_; }
  // At most this many bytes go through one read or write, to exercise short ones.
  void limit_transfers(std::size_t bytes) { most_bytes_ = bytes; }

  int inspect(const std::string& path, FileStatus& status) const override {
    return fails() ? -1 : real_.inspect(path, status);
  }
  std::string resolve(const std::string& path) const override { return fails() ? "" : real_.resolve(path); }
  int open_to_read(const std::string& path) const override { return fails() ? -1 : real_.open_to_read(path); }
  int open_to_write(const std::string& path) const override { return fails() ? -1 : real_.open_to_write(path); }
  int create(const std::string& path, mode_t mode) const override { return fails() ? -1 : real_.create(path, mode); }
  int inspect_open(int descriptor, FileStatus& status) const override {
    return fails() ? -1 : real_.inspect_open(descriptor, status);
  }
  ssize_t read(int descriptor, void* bytes, std::size_t count) const override {
    return fails() ? -1 : real_.read(descriptor, bytes, limited(count));
  }
  ssize_t write(int descriptor, const void* bytes, std::size_t count) const override {
    return fails() ? -1 : real_.write(descriptor, bytes, limited(count));
  }
  int sync(int descriptor) const override { return fails() ? -1 : real_.sync(descriptor); }
  int close(int descriptor) const override { return real_.close(descriptor); }
  int rename(const std::string& from, const std::string& to) const override {
    return fails() ? -1 : real_.rename(from, to);
  }
  int remove(const std::string& path) const override { return real_.remove(path); }
  int make_folder(const std::string& path, mode_t mode) const override {
    return fails() ? -1 : real_.make_folder(path, mode);
  }
  int touch(const std::string& path) const override { return fails() ? -1 : real_.touch(path); }
  int list(const std::string& path, std::vector<std::string>& names) const override {
    return fails() ? -1 : real_.list(path, names);
  }
  const std::byte* map(int descriptor, std::size_t count) const override {
    return fails() ? nullptr : real_.map(descriptor, count);
  }

 private:
  bool fails() const {
    if (++calls_ != failing_call_) return false;
    errno = error_;
    return true;
  }
  std::size_t limited(std::size_t count) const { return most_bytes_ != 0 && count > most_bytes_ ? most_bytes_ : count; }

  int failing_call_;
  int error_;
  std::size_t most_bytes_ = 0;
  const FileSystem& real_;
  mutable int calls_ = 0;
};

}  // namespace weft
