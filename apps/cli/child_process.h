#pragma once

// This program once more, in a process of its own, for what is to be measured from a process's start.

#include <map>
#include <string>
#include <vector>

namespace weft {

struct ChildRun {
  std::string line;     // the first of its stdout, without its end; "" when there was none
  double seconds = 0;   // from just before the process was made until that line was here
  int status = 0;       // as a shell would say it
  std::string problem;  // its stderr, unless the status is 0
};

// Runs this process's program with `words` behind its name and waits for its end. `environment` replaces variables of
// this process's. What it writes to stderr goes to `error_path`, a file that is made anew. DeviceError when no process
// can be made.
ChildRun run_this_program(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
                          const std::string& error_path);

}  // namespace weft
