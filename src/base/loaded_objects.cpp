#include "base/loaded_objects.h"

#include <algorithm>

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft {
namespace {

bool has_relocated_code(const dl_phdr_info& object, std::span<const ElfW(Phdr)> segments) {
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
        return true;
  }
  return false;
}

int note_object(dl_phdr_info* object, std::size_t, void* data) {
  auto& found = *static_cast<std::vector<UnchangedPages>*>(data);
  const std::span<const ElfW(Phdr)> segments(object->dlpi_phdr, object->dlpi_phnum);
  if (has_relocated_code(*object, segments)) return 0;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const ElfW(Phdr) & segment : segments) {
    // Pages that relocations write to belong to a writable segment, even if they are written only once.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    // A page that two segments share may contain bytes of the other segment, so only whole pages count.
    const std::uintptr_t first = (begin + page - 1) / page * page, end = (begin + segment.p_filesz) / page * page;
    if (first < end) found.emplace_back(reinterpret_cast<std::byte*>(first), end - first);
  }
  return 0;
}

}  // namespace

std::vector<UnchangedPages> unchanged_pages() {
  std::vector<UnchangedPages> found;
  dl_iterate_phdr(note_object, &found);
  return found;
}

void drop_unchanged_pages(std::span<const UnchangedPages> pages) {
  // Runs within the loader's iteration, during which no object is closed. The memory of an object that was closed
  // earlier may have another owner now, so only objects that are still loaded are dropped.
  const auto drop = [](dl_phdr_info* object, std::size_t size, void* data) {
    std::vector<UnchangedPages> here;
    note_object(object, size, &here);
    for (const UnchangedPages& part : here)
      for (const UnchangedPages& wanted : *static_cast<const std::span<const UnchangedPages>*>(data))
        if (wanted.data() == part.data() && wanted.size() == part.size())
          (void)::madvise(part.data(), part.size(), MADV_DONTNEED);  // a hint only: a failure is ignored
    return 0;
  };
  dl_iterate_phdr(drop, &pages);
}

}  // namespace weft
