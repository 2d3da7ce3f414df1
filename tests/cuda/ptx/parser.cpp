#include "tests/cuda/ptx/parser.h"

#include <algorithm>

#include "base/text.h"
#include "tests/cuda/ptx/cursor.h"

namespace weft::ptx {

// The parts outside the bodies of kernels.
class ModuleReader {
 public:
  explicit ModuleReader(ModuleText& module) : module_(module), cursor_(module.tokens_, module.name_) {}

  void run() {
    read_front();
    while (cursor_.peek().kind != TokenKind::end) {
      if (cursor_.take_if(".shared")) {
        read_shared();
      } else if (cursor_.take_if(".global")) {
        skip_constant();
      } else {
        cursor_.take_if(".visible");
        cursor_.expect(".entry");
        read_entry();
      }
    }
  }

 private:
  void read_front() {
    cursor_.expect(".version");
    const std::string_view version = cursor_.word("a version");
    const bool is_version = version.size() == 3 && version[1] == '.' && is_digit(version[0]) && is_digit(version[2]);
    if (!is_version) cursor_.fail("the version must be of two digits, as 8.5 is");
    module_.version_ = 10 * (version[0] - '0') + (version[2] - '0');
    cursor_.expect(".target");
    const std::string_view target = cursor_.word("an architecture");
    const std::size_t digits = target.find_first_not_of("0123456789", 3);
    std::uint64_t number = 0;
    std::uint8_t width = 0;
    if (!target.starts_with("sm_") || !parse_number(target.substr(3, digits - 3), number, width) || number > 999)
      cursor_.fail("the target must be sm_ and a number");
    module_.architecture_ = static_cast<int>(number);
    const std::string_view suffix = target.substr(std::min(digits, target.size()));
    if (!suffix.empty() && suffix != "a" && suffix != "f") cursor_.fail("an architecture's suffix must be a or f");
    if (!suffix.empty()) module_.architecture_suffix_ = suffix[0];
    cursor_.expect(".address_size");
    cursor_.expect("64");
  }

  void read_shared() {
    const Declared declared = take_declared(cursor_);
    cursor_.expect(";");
    if (!module_.shared_.emplace(declared.name, ModuleText::SharedVariable{declared.alignment, declared.bytes}).second)
      cursor_.fail(fmt::format("{} is declared twice", declared.name));
  }

  // NVRTC lists the constants of the source that it folded into the code. A kernel that names one is refused.
  void skip_constant() {
    take_declared(cursor_);
    cursor_.expect("=");
    std::uint64_t bits = 0;
    std::uint8_t width = 0;
    cursor_.take_if("-");
    if (!parse_number(cursor_.word("a number"), bits, width)) cursor_.fail("a constant must be a number");
    cursor_.expect(";");
  }

  // Skips to after the body's last brace.
  void read_entry() {
    const std::size_t place = cursor_.place();
    const std::string kernel(cursor_.word("a kernel's name"));
    if (!module_.kernels_.emplace(kernel, place).second) cursor_.fail(fmt::format("{} is defined twice", kernel));
    while (!cursor_.is("{")) {
      if (cursor_.peek().kind == TokenKind::end) cursor_.fail_wanted("{");
      cursor_.take();
    }
    int depth = 0;
    do {
      if (cursor_.peek().kind == TokenKind::end) cursor_.fail_wanted("}");
      depth += cursor_.is("{") ? 1 : cursor_.is("}") ? -1 : 0;
      cursor_.take();
    } while (depth > 0);
  }

  ModuleText& module_;
  Cursor cursor_;
};

ModuleText::ModuleText(std::string text, std::string name)
    : text_(std::make_unique<const std::string>(std::move(text))),
      name_(std::move(name)),
      tokens_(tokens_of(*text_, name_)) {
  ModuleReader(*this).run();
}

std::vector<std::string> ModuleText::kernels() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : kernels_) names.push_back(name);
  return names;
}

}  // namespace weft::ptx
