#pragma once

// How much memory this process can still take without swapping.

#include <cstdint>
#include <string>

namespace weft {

// The bytes that the system calls available (MemAvailable), or what the limits of the process's control groups leave,
// if that is less. Pages of files count as available, because the system can drop them. Without /proc it is what
// sysinfo(2) reports as free, which excludes most pages of files, or what the root group leaves. The folders are those
// of the system; tests have others.
std::int64_t available_memory_bytes(const std::string& processes = "/proc",
                                    const std::string& groups = "/sys/fs/cgroup");

}  // namespace weft
