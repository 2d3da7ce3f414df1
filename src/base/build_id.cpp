#include "base/build_id.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include <elf.h>
#include <fmt/core.h>
#include <link.h>

#include "base/elf_note.h"

namespace weft {

// Null in a program without a stamp.
[[gnu::weak]] const char* build_stamp();

namespace {

struct Search {
  std::uintptr_t address;  // an address in the code of the object
  std::string id;
};

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
    for (const std::byte byte : find_note({notes, segment.p_memsz}, "GNU", NT_GNU_BUILD_ID))
      search.id += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return 1;
}

}  // namespace

std::string build_id() {
  if (build_stamp != nullptr) return build_stamp();
  Search search{reinterpret_cast<std::uintptr_t>(&build_id), ""};
  dl_iterate_phdr(look, &search);
  return search.id;
}

}  // namespace weft
