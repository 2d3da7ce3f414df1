#pragma once

// The files that this process has mapped, so that a signal handler can name the file whose page cannot be read.
//
// If another process shrinks a mapped file, or the disk fails, an access to a lost page raises SIGBUS, which ends the
// process without a message.

#include <cstddef>
#include <span>
#include <string>

namespace weft {

// From now on, an access to a lost page of a remembered mapping prints `weft: ["FILE"] became shorter while it was
// read, or cannot be read` on stderr and exits with the status of a UserError. Every other SIGBUS goes to the handler
// that was installed before. Call it once. Only a program may do so: a library leaves signals to its caller.
void report_lost_pages();

// For MappedFile. `bytes` is a whole mapping. It must be forgotten before it is unmapped, because another mapping may
// get its address.
void remember_mapping(std::span<const std::byte> bytes, const std::string& path);
void forget_mapping(std::span<const std::byte> bytes) noexcept;

}  // namespace weft
