#pragma once

// ELF notes of programs and libraries: data that the linker or the source stores so that tools can read it without
// loading the file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

// The content of the first note with that owner and type in a segment of notes; empty if there is none. The result
// points into `notes`.
std::span<const std::byte> find_note(std::span<const std::byte> notes, std::string_view owner, std::uint32_t type);

// The same for the notes of a file, as text. "" if there is none, or if the file is not a program or library in this
// machine's format. It reads only the first pages of the file, where linkers store notes.
std::string note_of_file(const std::string& path, std::string_view owner, std::uint32_t type);

}  // namespace weft
