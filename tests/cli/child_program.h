#pragma once

// A program that runs as a child process of the test: its input, its output, and the files that it has mapped.

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/program_run.h"

namespace weft {

class ChildProgram {
 public:
  // The program's path and its arguments. `environment` is its whole environment, except for the options of sanitizers.
  // The running test fails if it cannot be started.
  ChildProgram(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment);
  // Kills it if it still runs.
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  // Writes a line and waits for the next line; "" if the program ended instead.
  std::string ask(const std::string& line);
  // The files that it has mapped now, from /proc.
  std::string maps() const;
  bool is_running() const;
  // What it has written to its standard error so far.
  std::string errors() const;
  void send_signal(int signal);
  // Waits until it has written these words to its standard error; false if it does not.
  bool has_written(const std::string& words) const;
  // Closes the input and waits for the end. The status is -1 if a signal ended it.
  ProgramRun wait();

 private:
  pid_t process_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
};

}  // namespace weft
