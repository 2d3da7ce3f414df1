#pragma once

// Runs this program in a new process, for measurements from a process's start.

#include <map>
#include <string>
#include <vector>

namespace weft {

struct ChildRun {
  std::string line;     // first line of its stdout, without the newline; "" if there was none
  double seconds = 0;   // from just before the process was created until that line arrived
  int status = 0;       // exit status as a shell reports it
  std::string problem;  // its stderr, unless the status is 0
};

// Runs this process's program with the arguments `words` and waits until it ends. `environment` overrides variables of
// this process. The child's stderr is written to `error_path`, a file that is created or truncated. Throws DeviceError
// if no process can be created.
ChildRun run_this_program(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
                          const std::string& error_path);

}  // namespace weft
