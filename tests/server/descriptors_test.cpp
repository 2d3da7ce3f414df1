// A server whose process may not open as many files as it has connections.

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::server_descriptors_test {

// Lets the process open one more file, until the end of the scope.
class OneMoreDescriptor {
 public:
  OneMoreDescriptor() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    const rlimit limit{.rlim_cur = static_cast<rlim_t>(next) + 1, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~OneMoreDescriptor() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OneMoreDescriptor(const OneMoreDescriptor&) = delete;
  OneMoreDescriptor& operator=(const OneMoreDescriptor&) = delete;

 private:
  rlimit before_{};
};

std::ptrdiff_t lines_with(RunningServer& running, const std::string& part) {
  const std::vector<std::string> log = running.log();
  return std::count_if(log.begin(), log.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(ServerDescriptors, ConcurrentClientIsAcceptedOnceThereIsOne) {
  constexpr const char* kRefusal = "no connection can be accepted";
  ServerSettings settings;
  settings.limits.connections = 5;
  RunningServer running(std::move(settings));
  std::unique_ptr<HttpClient> client;
  {
    const OneMoreDescriptor limit;
    client = std::make_unique<HttpClient>(running.port());
    for (int i = 0; i < 10000 && lines_with(running, kRefusal) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(250));  // in which it is tried again
  }
  EXPECT_EQ(client->get("/health").status, 200);
  EXPECT_EQ(lines_with(running, kRefusal), 1);
  EXPECT_EQ(lines_with(running, "ulimit -n"), 1);
}

TEST(ServerDescriptors, AreComparedWithTheConnectionsAtTheStart) {
  ServerSettings settings;
  settings.limits.connections = std::numeric_limits<std::size_t>::max();
  RunningServer few(std::move(settings));
  EXPECT_EQ(lines_with(few, "ulimit -n"), 1);
  settings = {};
  settings.limits.connections = 1;
  RunningServer enough(std::move(settings));
  EXPECT_EQ(lines_with(enough, "ulimit -n"), 0);
}

}  // namespace weft::server_descriptors_test
