#include "apps/cli/child_process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/stopwatch.h"

namespace weft {
namespace {

constexpr std::size_t kMostLine = 1u << 20;
constexpr std::size_t kMostProblem = 1u << 16;

// NAME=VALUE lines of this process's environment, with those of `changed` in their place.
std::vector<std::string> environment_lines(const std::map<std::string, std::string>& changed) {
  std::vector<std::string> lines;
  for (char** line = ::environ; line != nullptr && *line != nullptr; ++line) {
    const std::string text = *line;
    if (changed.count(text.substr(0, text.find('='))) == 0) lines.push_back(text);
  }
  for (const auto& [name, value] : changed) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Up to the end of the line; the rest is read and dropped by drain.
std::string read_line(int descriptor) {
  std::string line;
  char byte = 0;
  for (;;) {
    const ssize_t count = ::read(descriptor, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || byte == '\n' || line.size() == kMostLine) return line;
    line += byte;
  }
}

void drain(int descriptor) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = ::read(descriptor, bytes, sizeof bytes);
    if (count == 0 || (count < 0 && errno != EINTR)) return;
  }
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ChildRun run_this_program(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
                          const std::string& error_path) {
  std::vector<std::string> arguments{"weft"}, variables = environment_lines(environment);
  arguments.insert(arguments.end(), words.begin(), words.end());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_device("[process] no pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ChildRun run;
  pid_t process = 0;
  const Stopwatch watch;
  const int problem = ::posix_spawn(&process, "/proc/self/exe", &actions, nullptr, pointers_to(arguments).data(),
                                    pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (problem == 0) {
    run.line = read_line(ends[0]);
    run.seconds = watch.total() / 1000;
    drain(ends[0]);
    run.status = wait_for(process);
  }
  ::close(ends[0]);
  if (problem != 0) fail_device("[process] none can be made: {}", std::strerror(problem));
  if (run.status != 0) run.problem = read_file(error_path, kMostProblem);
  return run;
}

}  // namespace weft
