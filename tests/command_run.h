#pragma once

// Runs a command of the shell, such as a compiler.

#include <string>

namespace weft {

struct CommandRun {
  int status = -1;     // its exit status; -1 if it did not start or a signal ended it
  std::string output;  // of both streams
};

CommandRun run_command(const std::string& command);

}  // namespace weft
