#include "base/mapped_files.h"

#include <csignal>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "tests/base/temporary_folder.h"

namespace weft::mapped_files_test {

constexpr std::size_t kBytes = 1 << 16;

void shrink(const std::string& path) { std::filesystem::resize_file(path, 0); }

void read_last_of(std::span<const std::byte> bytes) {
  [[maybe_unused]] const std::byte last = *static_cast<const volatile std::byte*>(&bytes.back());
}

class LostPages : public ::testing::Test {
 protected:
  LostPages() {
    for (const std::string& path : {path_, other_path_}) write_then_rename(path, std::string(kBytes, 'x'));
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "weights", other_path_ = folder_ / "other";
};

TEST_F(LostPages, AreReportedWithTheirFile) {
  const auto read_lost_page = [&] {
    report_lost_pages();
    std::optional<MappedFile> forgotten(other_path_);
    const MappedFile other(other_path_), file(path_);
    forgotten.reset();
    MappedFile moved(path_);
    MappedFile last = std::move(moved);
    shrink(path_);
    read_last_of(other.bytes());
    read_last_of(last.bytes());
  };
  EXPECT_EXIT(read_lost_page(), ::testing::ExitedWithCode(2),
              "weft: \\[\".*/weights\"\\] became shorter while it was read, or cannot be read\n");
}

// A sanitizer has a handler of its own, whose status is another.
TEST_F(LostPages, OfOtherMappingsGoToTheHandlerBefore) {
  const auto read_lost_page = [&] {
    std::signal(SIGBUS, [](int) { ::_exit(7); });
    report_lost_pages();
    std::optional<MappedFile> forgotten(path_);
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const auto* address = static_cast<const std::byte*>(forgotten->bytes().data());
    forgotten.reset();
    void* mapped = ::mmap(const_cast<std::byte*>(address), kBytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    shrink(path_);
    read_last_of({static_cast<const std::byte*>(mapped), kBytes});
  };
  EXPECT_EXIT(read_lost_page(), ::testing::ExitedWithCode(7), "");
}

TEST_F(LostPages, AreNotWhatASentSignalIsAbout) {
  const auto send = [] {
    std::signal(SIGBUS, [](int) { ::_exit(7); });
    report_lost_pages();
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(send(), ::testing::ExitedWithCode(7), "");
}

}  // namespace weft::mapped_files_test
