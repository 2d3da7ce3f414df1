#include "base/build_id.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <elf.h>
#include <fmt/core.h>
#include <link.h>

namespace weft {
namespace {

struct Search {
  std::uintptr_t address;  // of code of the wanted object
  std::string id;
};

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// A segment of notes: each a header, a name and a content, padded to words.
std::string id_among(std::span<const std::byte> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof(note));
    const std::size_t content = sizeof(note) + padded(note.n_namesz);
    if (content + note.n_descsz > notes.size()) return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + sizeof(note), "GNU", 4) == 0) {
      std::string id;
      for (const std::byte byte : notes.subspan(content, note.n_descsz))
        id += fmt::format("{:02x}", static_cast<unsigned>(byte));
      return id;
    }
    const std::size_t whole = content + padded(note.n_descsz);
    notes = whole < notes.size() ? notes.subspan(whole) : std::span<const std::byte>();
  }
  return "";
}

int look(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::span<const ElfW(Phdr)> segments(object->dlpi_phdr, object->dlpi_phnum);
  bool holds = false;
  for (const ElfW(Phdr) & segment : segments)
    holds = holds ||
            (segment.p_type == PT_LOAD && search.address - (object->dlpi_addr + segment.p_vaddr) < segment.p_memsz);
  if (!holds) return 0;
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type != PT_NOTE || !search.id.empty()) continue;
    const auto* notes = reinterpret_cast<const std::byte*>(object->dlpi_addr + segment.p_vaddr);
    search.id = id_among({notes, segment.p_memsz});
  }
  return 1;
}

}  // namespace

std::string build_id() {
  Search search{reinterpret_cast<std::uintptr_t>(&build_id), ""};
  dl_iterate_phdr(look, &search);
  return search.id;
}

}  // namespace weft
