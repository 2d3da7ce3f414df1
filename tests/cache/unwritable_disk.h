#pragma once

// A disk that can only be read: each call that would change it fails with the error of a full or read-only disk.

#include <cerrno>
#include <string>

#include "tests/base/failing_file_system.h"

namespace weft {

class UnwritableDisk final : public FailingFileSystem {
 public:
  explicit UnwritableDisk(int error) : FailingFileSystem(0, 0), error_(error) {}
  int create(const std::string&, mode_t) const override { return refuse(); }
  int rename(const std::string&, const std::string&) const override { return refuse(); }
  int remove(const std::string&) const override { return refuse(); }
  int make_folder(const std::string&, mode_t) const override { return refuse(); }
  int touch(const std::string&) const override { return refuse(); }

 private:
  int refuse() const {
    errno = error_;
    return -1;
  }
  int error_;
};

}  // namespace weft
