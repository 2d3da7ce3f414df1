#include "server/process_values.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

namespace weft {
namespace {

// Fields of /proc/self/stat, counted from the one after the program's name, which is in parentheses (proc(5)).
constexpr int kStart = 19, kVirtualBytes = 20, kResidentPages = 21;

void read_stat(MetricValues& values) {
  std::ifstream file("/proc/self/stat");
  std::string text;
  if (!std::getline(file, text) || text.rfind(')') == std::string::npos) return;
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  double numbers[kResidentPages + 1] = {};
  fields >> field;  // the state, a letter
  for (int i = 1; i <= kResidentPages; ++i)
    if (!(fields >> numbers[i])) return;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  values.virtual_bytes = numbers[kVirtualBytes];
  values.resident_bytes = numbers[kResidentPages] * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (values.start_time != 0) return;
  std::ifstream system("/proc/stat");  // long where there are many processors, so it is read once
  for (std::string word; system >> word;) {
    double boot = 0;
    if (word == "btime" && system >> boot) values.start_time = boot + numbers[kStart] / ticks;
  }
}

}  // namespace

void read_process_values(MetricValues& values) {
  read_stat(values);
  std::error_code error;
  double files = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error))
    ++files;
  if (!error) values.open_files = files;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) values.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) values.max_files = static_cast<double>(limit.rlim_cur);
}

}  // namespace weft
