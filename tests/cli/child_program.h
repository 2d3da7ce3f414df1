#pragma once

// A program that runs beside the test, as a process of its own: what is said to it, what it says, and what it has
// mapped.

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/program_run.h"

namespace weft {

class ChildProgram {
 public:
  // The program by its path, and what stands behind it; `environment` is all that it has, but for the options of
  // sanitizers. Fails the running test where it cannot be started.
  ChildProgram(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment);
  // Kills it if it still runs.
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  // Says a line, and waits for the line that comes next; "" where the program ended instead.
  std::string ask(const std::string& line);
  // The files that it has mapped now, as /proc tells.
  std::string maps() const;
  bool is_running() const;
  // Says no more, and waits for the end. Status -1 where a signal ended it.
  ProgramRun wait();

 private:
  pid_t process_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
};

}  // namespace weft
