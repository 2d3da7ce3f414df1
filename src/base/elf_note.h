#pragma once

// Notes of programs and libraries: what the linker or the source put into them to be read without loading them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

// The content of the first note of that owner and type in a segment of notes; empty where there is none. It looks into
// `notes`.
std::span<const std::byte> find_note(std::span<const std::byte> notes, std::string_view owner, std::uint32_t type);

// The same of a file's notes, as text; "" where there is none, or no program or library of this machine's format. Of
// the file its first pages are read, where linkers put notes, however large it is.
std::string note_of_file(const std::string& path, std::string_view owner, std::uint32_t type);

}  // namespace weft
