#pragma once

// How much memory this process can still take without swapping.

#include <cstdint>
#include <string>

namespace weft {

// The bytes that the system calls available (MemAvailable), or what the limits of the process's control groups leave,
// if that is less. Pages of files count as available, because the system can drop them. The folders are those of the
// system; tests have others. 0 if nothing can be read.
std::int64_t available_memory_bytes(const std::string& processes = "/proc",
                                    const std::string& groups = "/sys/fs/cgroup");

}  // namespace weft
