#include "base/available_memory.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/base/temporary_folder.h"

namespace weft::available_memory_test {

class AvailableMemory : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::int64_t bytes() const { return available_memory_bytes(folder_ / "proc", folder_ / "groups"); }

  const TemporaryFolder folder_;
};

TEST_F(AvailableMemory, IsWhatTheSystemOrAGroupLeaves) {
  write("proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:   1000 kB\nSwapFree: 5 kB\n");
  EXPECT_EQ(bytes(), 1'024'000);
  write("proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(bytes(), 1'024'000) << "a group without limits";
  write("groups/a/b/memory.max", "max\n");
  write("groups/a/b/memory.current", "500\n");
  EXPECT_EQ(bytes(), 1'024'000);
  write("groups/a/memory.max", "10000\n");
  write("groups/a/memory.current", "4000\n");
  EXPECT_EQ(bytes(), 6000) << "the limit of a group that contains it";
  write("groups/a/memory.stat", "anon 1\nfile 3000\n");
  EXPECT_EQ(bytes(), 9000) << "pages of files can be dropped";
}

TEST_F(AvailableMemory, ReadsGroupsOfTheFirstVersion) {
  write("proc/meminfo", "MemAvailable: 1000 kB\n");
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:cpuset,memory:/outside/of/the/container\n0::/\n");
  write("groups/memory/memory.limit_in_bytes", "8000\n");
  write("groups/memory/memory.usage_in_bytes", "9000\n");
  EXPECT_EQ(bytes(), 0) << "never below zero";
  write("groups/memory/memory.stat", "cache 5\ntotal_cache 2000\n");
  EXPECT_EQ(bytes(), 1000);
}

TEST_F(AvailableMemory, IsReadWithoutProc) {
  EXPECT_GT(bytes(), 0);
  write("groups/memory.max", "6000\n");
  write("groups/memory.current", "5000\n");
  EXPECT_EQ(bytes(), 1000) << "the limit of a container";
}

TEST_F(AvailableMemory, IsPositiveOnThisMachine) { EXPECT_GT(available_memory_bytes(), 0); }

}  // namespace weft::available_memory_test
