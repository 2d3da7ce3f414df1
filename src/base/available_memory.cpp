#include "base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include <sys/sysinfo.h>

namespace weft {
namespace {

// The files of a control group of one version. Lines of memory.stat begin with a name.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* file_pages;
};
constexpr GroupFiles kFirstVersion{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"};
constexpr GroupFiles kSecondVersion{"memory.max", "memory.current", "file"};

std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // also for the word max, which is no limit
}

// The number after `name` in a file of names and numbers.
std::optional<std::int64_t> number_after(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    std::int64_t number = 0;
    if (word == name && file >> number) return number;
  }
  return std::nullopt;
}

std::int64_t left_in_group(const std::string& folder, const GroupFiles& files) {
  const auto limit = number_in(folder + "/" + files.limit), used = number_in(folder + "/" + files.used);
  if (!limit || !used) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t file_pages = number_after(folder + "/memory.stat", files.file_pages).value_or(0);
  return std::max<std::int64_t>(0, *limit - *used + std::min(file_pages, *used));
}

// What a group and those that contain it leave, the root excluded.
std::int64_t left_in_groups(const std::string& root, std::string group, const GroupFiles& files) {
  std::int64_t left = std::numeric_limits<std::int64_t>::max();
  for (; group.size() > 1; group.resize(group.rfind('/'))) left = std::min(left, left_in_group(root + group, files));
  return left;
}

std::int64_t available_in_system(const std::string& processes) {
  constexpr std::int64_t kKibibyte = 1024;
  if (const auto available = number_after(processes + "/meminfo", "MemAvailable:")) return *available * kKibibyte;
  struct sysinfo system = {};
  if (::sysinfo(&system) != 0) return 0;
  return static_cast<std::int64_t>(system.freeram + system.bufferram) * system.mem_unit;
}

}  // namespace

std::int64_t available_memory_bytes(const std::string& processes, const std::string& groups) {
  const std::string first_version = groups + "/memory";
  // In a container the process's group may be mounted as the root.
  std::int64_t available = std::min({available_in_system(processes), left_in_group(groups, kSecondVersion),
                                     left_in_group(first_version, kFirstVersion)});
  // A line has the number of a hierarchy, its controllers and the path of the process's group. The hierarchy of the
  // second version has no controllers.
  std::ifstream lines(processes + "/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) available = std::min(available, left_in_groups(groups, group, kSecondVersion));
    if ((',' + controllers + ',').find(",memory,") != std::string::npos)
      available = std::min(available, left_in_groups(first_version, group, kFirstVersion));
  }
  return available;
}

}  // namespace weft
