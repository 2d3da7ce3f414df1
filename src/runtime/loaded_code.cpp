#include "runtime/loaded_code.h"

#include <cstring>
#include <map>
#include <vector>

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

namespace weft {

struct LoadedCode::State {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::map<std::string, void*> symbols;
  ~State() {
    if (base != nullptr) munmap(base, bytes);
  }
};

namespace {

// Reads the object and checks the bounds of each access.
class ObjectReader {
 public:
  explicit ObjectReader(std::span<const std::byte> object) : object_(object) {
    const Elf64_Ehdr header = at<Elf64_Ehdr>(0);
    CHECK(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
              header.e_type == ET_REL && header.e_machine == EM_X86_64,
          "generated code is not a relocatable object for x86-64");
    for (std::size_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const Elf64_Shdr& section(std::size_t index) const {
    CHECK(index < sections_.size(), "generated code has no section {}", index);
    return sections_[index];
  }
  template <class T>
  T at(std::size_t offset) const {
    CHECK(offset <= object_.size() && object_.size() - offset >= sizeof(T), "generated code is cut off");
    T value;
    std::memcpy(&value, object_.data() + offset, sizeof(T));
    return value;
  }
  std::span<const std::byte> contents(const Elf64_Shdr& section) const {
    CHECK(section.sh_offset <= object_.size() && object_.size() - section.sh_offset >= section.sh_size,
          "generated code is cut off");
    return object_.subspan(section.sh_offset, section.sh_size);
  }
  std::string text(const Elf64_Shdr& strings, std::size_t offset) const {
    const auto bytes = contents(strings);
    std::string text;
    for (; offset < bytes.size() && bytes[offset] != std::byte{0}; ++offset) text += static_cast<char>(bytes[offset]);
    return text;
  }

 private:
  std::span<const std::byte> object_;
  std::vector<Elf64_Shdr> sections_;
};

// Whether the section is needed when the code runs. Unwind tables are not: nothing unwinds through the code.
bool is_loaded(const Elf64_Shdr& section) {
  return (section.sh_flags & SHF_ALLOC) != 0 && section.sh_type == SHT_PROGBITS && section.sh_size > 0;
}

// Places the sections in order, each at its alignment. Returns the total size.
std::size_t place_sections(const ObjectReader& object, std::vector<std::size_t>& offsets) {
  std::size_t size = 0;
  for (const Elf64_Shdr& section : object.sections()) {
    const std::size_t alignment = std::max<std::size_t>(section.sh_addralign, 1);
    CHECK((alignment & (alignment - 1)) == 0 && alignment <= 4096, "generated code wants an alignment of {}",
          alignment);
    if (is_loaded(section)) size = (size + alignment - 1) / alignment * alignment;
    offsets.push_back(size);
    if (is_loaded(section)) size += section.sh_size;
  }
  return size;
}

class Relocator {
 public:
  Relocator(const ObjectReader& object, std::byte* base, std::vector<std::size_t> offsets)
      : object_(object), base_(base), offsets_(std::move(offsets)) {}

  std::byte* address_of_symbol(const Elf64_Shdr& table, std::size_t index) const {
    const auto symbol = object_.at<Elf64_Sym>(table.sh_offset + index * sizeof(Elf64_Sym));
    CHECK(symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE, "generated code wants {}, which it lacks",
          object_.text(object_.section(table.sh_link), symbol.st_name));
    CHECK(is_loaded(object_.section(symbol.st_shndx)), "generated code refers to a section that is not loaded");
    return base_ + offsets_[symbol.st_shndx] + symbol.st_value;
  }

  void relocate(const Elf64_Shdr& relocations) const {
    const Elf64_Shdr& target = object_.section(relocations.sh_info);
    if (!is_loaded(target)) return;
    const Elf64_Shdr& symbols = object_.section(relocations.sh_link);
    for (std::size_t i = 0; i < relocations.sh_size / sizeof(Elf64_Rela); ++i) {
      const auto entry = object_.at<Elf64_Rela>(relocations.sh_offset + i * sizeof(Elf64_Rela));
      const auto type = ELF64_R_TYPE(entry.r_info);
      const std::size_t width = type == R_X86_64_64 ? 8 : 4;
      CHECK(entry.r_offset <= target.sh_size && target.sh_size - entry.r_offset >= width,
            "generated code is relocated outside its section");
      std::byte* place = base_ + offsets_[relocations.sh_info] + entry.r_offset;
      const auto value = reinterpret_cast<std::intptr_t>(address_of_symbol(symbols, ELF64_R_SYM(entry.r_info))) +
                         static_cast<std::intptr_t>(entry.r_addend);
      if (type == R_X86_64_64) {
        std::memcpy(place, &value, sizeof(value));
        continue;
      }
      CHECK(type == R_X86_64_PC32 || type == R_X86_64_PLT32, "generated code has a relocation of type {}", type);
      const auto distance = static_cast<std::int32_t>(value - reinterpret_cast<std::intptr_t>(place));
      std::memcpy(place, &distance, sizeof(distance));
    }
  }

 private:
  const ObjectReader& object_;
  std::byte* base_;
  std::vector<std::size_t> offsets_;
};

}  // namespace

LoadedCode::LoadedCode(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadedCode::~LoadedCode() = default;

std::shared_ptr<const LoadedCode> LoadedCode::load(std::span<const std::byte> bytes) {
  const ObjectReader object(bytes);
  std::vector<std::size_t> offsets;
  const std::size_t used = place_sections(object, offsets);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto state = std::make_unique<State>();
  state->bytes = std::max<std::size_t>((used + page - 1) / page * page, page);
  void* pages = mmap(nullptr, state->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    fail_device("[code] {} bytes for generated code cannot be had: {}", state->bytes, system_error_text());
  state->base = static_cast<std::byte*>(pages);
  for (std::size_t i = 0; i < object.sections().size(); ++i) {
    if (!is_loaded(object.section(i))) continue;
    const auto contents = object.contents(object.section(i));
    std::memcpy(state->base + offsets[i], contents.data(), contents.size());
  }
  const Relocator relocator(object, state->base, std::move(offsets));
  for (const Elf64_Shdr& section : object.sections()) {
    CHECK(section.sh_type != SHT_REL, "generated code has relocations without addends");
    if (section.sh_type == SHT_RELA) relocator.relocate(section);
    if (section.sh_type != SHT_SYMTAB) continue;
    for (std::size_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto symbol = object.at<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
        state->symbols[object.text(object.section(section.sh_link), symbol.st_name)] =
            relocator.address_of_symbol(section, i);
    }
  }
  if (mprotect(state->base, state->bytes, PROT_READ | PROT_EXEC) != 0)
    fail_device("[code] generated code cannot be made executable: {}", system_error_text());
  return std::shared_ptr<const LoadedCode>(new LoadedCode(std::move(state)));
}

void* LoadedCode::address_of(const std::string& name) const {
  const auto found = state_->symbols.find(name);
  CHECK(found != state_->symbols.end(), "generated code does not define {}", name);
  return found->second;
}

std::size_t LoadedCode::bytes() const { return state_->bytes; }

}  // namespace weft
