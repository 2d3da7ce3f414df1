#include "base/elf_note.h"

#include <cstring>

#include <elf.h>
#include <link.h>

#include "base/error.h"
#include "base/files.h"

namespace weft {
namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

std::span<const std::byte> part_of(std::span<const std::byte> bytes, std::size_t offset, std::size_t count) {
  if (offset > bytes.size() || count > bytes.size() - offset) return {};
  return bytes.subspan(offset, count);
}

}  // namespace

std::span<const std::byte> find_note(std::span<const std::byte> notes, std::string_view owner, std::uint32_t type) {
  // A note has a header, a name that ends in a zero byte, and a content. Name and content are padded to words.
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof(note));
    const std::size_t content = sizeof(note) + padded(note.n_namesz);
    if (content > notes.size() || note.n_descsz > notes.size() - content) return {};
    if (note.n_type == type && note.n_namesz == owner.size() + 1 &&
        std::memcmp(notes.data() + sizeof(note), owner.data(), owner.size()) == 0)
      return notes.subspan(content, note.n_descsz);
    const std::size_t whole = content + padded(note.n_descsz);
    notes = whole < notes.size() ? notes.subspan(whole) : std::span<const std::byte>();
  }
  return {};
}

std::string note_of_file(const std::string& path, std::string_view owner, std::uint32_t type) {
  try {
    const MappedFile file(path);
    const std::span<const std::byte> bytes = file.bytes();
    ElfW(Ehdr) header;
    if (bytes.size() < sizeof(header)) return "";
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr))) return "";
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      const auto row = part_of(bytes, header.e_phoff + i * sizeof(ElfW(Phdr)), sizeof(ElfW(Phdr)));
      if (row.empty()) return "";
      ElfW(Phdr) segment;
      std::memcpy(&segment, row.data(), sizeof(segment));
      if (segment.p_type != PT_NOTE) continue;
      const auto found = find_note(part_of(bytes, segment.p_offset, segment.p_filesz), owner, type);
      if (!found.empty()) return {reinterpret_cast<const char*>(found.data()), found.size()};
    }
  } catch (const Error&) {  // an unreadable file has no notes
  }
  return "";
}

}  // namespace weft
