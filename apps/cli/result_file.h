#pragma once

// The file of the results of a command that may take hours: a benchmark or a batch. If the file cannot be written, the
// command is refused at its start.

#include <string>

namespace weft {

// UserError, which names the flag, unless a file can be made at this path or can replace the one that is there. Changes
// nothing and leaves nothing.
void check_can_write(const std::string& path, const char* flag);

// The same for a file that grows.
void check_can_append(const std::string& path, const char* flag);

}  // namespace weft
