#pragma once

// How much memory of this process is resident, and giving it back.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weft {

// The size of the resident pages that overlap `bytes`. Pages that were never touched are not resident; huge pages count
// as a whole. Nullopt if the system does not report it.
std::optional<std::int64_t> resident_bytes(std::span<const std::byte> bytes);

// Makes bytes of private memory that no file backs zero. The pages that are wholly among them take no memory until they
// are written again.
void clear_memory(std::span<std::byte> bytes);

// The most that was resident since this program began (VmHWM). Without /proc it is the peak of getrusage(2), which also
// counts what the process was before exec. The folder is the system's; tests have another.
std::int64_t peak_resident_bytes(const std::string& processes = "/proc");

}  // namespace weft
