#pragma once

// How much of a part of this process's memory is there.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft {

// Bytes of the pages that hold a part of `bytes`, as far as the system keeps them in memory: of pages that were never
// touched it keeps nothing, of huge pages all of each. Nothing where the system does not say.
std::optional<std::int64_t> resident_bytes(std::span<const std::byte> bytes);

}  // namespace weft
