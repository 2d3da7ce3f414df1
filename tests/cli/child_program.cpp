#include "tests/cli/child_program.h"

#include <csignal>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"

namespace weft {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string rest_of(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  return text;
}

}  // namespace

ChildProgram::ChildProgram(const std::vector<std::string>& words,
                           const std::map<std::string, std::string>& environment) {
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  input_ = in[1];
  output_ = out[0];
  errors_ = ::memfd_create("errors", MFD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors_, STDERR_FILENO);
  std::vector<std::string> arguments = words, variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
    if (const char* value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
  EXPECT_EQ(::posix_spawnp(&process_, arguments[0].c_str(), &actions, nullptr, pointers_to(arguments).data(),
                           pointers_to(variables).data()),
            0)
      << words[0];
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
}

ChildProgram::~ChildProgram() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  for (const int file : {input_, output_, errors_})
    if (file >= 0) ::close(file);
}

std::string ChildProgram::ask(const std::string& line) {
  const std::string said = line + "\n";
  // Sends no signal to a program that has ended.
  if (::send(input_, said.data(), said.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(said.size())) return "";
  std::string answer;
  for (char byte = 0; ::read(output_, &byte, 1) == 1 && byte != '\n';) answer += byte;
  return answer;
}

std::string ChildProgram::maps() const { return read_file("/proc/" + std::to_string(process_) + "/maps", 1 << 24); }

bool ChildProgram::is_running() const {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
}

std::string ChildProgram::errors() const {
  std::string text;
  char buffer[4096];
  // The program has the same offset in the file.
  for (ssize_t count = 0; (count = ::pread(errors_, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  return text;
}

bool ChildProgram::has_written(const std::string& words) const {
  for (int i = 0; i < 12000 && is_running() && errors().find(words) == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return errors().find(words) != std::string::npos;
}

void ChildProgram::send_signal(int signal) { ::kill(process_, signal); }

ProgramRun ChildProgram::wait() {
  ::close(input_);
  input_ = -1;
  ProgramRun run{.out = rest_of(output_)};
  int status = -1;
  if (process_ > 0) ::waitpid(process_, &status, 0);
  process_ = -1;
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ::lseek(errors_, 0, SEEK_SET);
  run.err = rest_of(errors_);
  return run;
}

}  // namespace weft
