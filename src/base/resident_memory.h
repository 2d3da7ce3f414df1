#pragma once

// Measures how much of a memory range of this process is resident.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft {

// The size of the resident pages that overlap `bytes`. Pages that were never touched are not resident; huge pages count
// as a whole. Nullopt if the system does not report it.
std::optional<std::int64_t> resident_bytes(std::span<const std::byte> bytes);

}  // namespace weft
