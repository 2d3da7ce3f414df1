// Bodies of kernels: declarations, labels and statements with their operands.

#include <limits>

#include "tests/cuda/ptx/cursor.h"
#include "tests/cuda/ptx/parser.h"

namespace weft::ptx {
namespace {

constexpr std::size_t kMostRegisters = 1 << 16;
// Limits of every device: arguments, a block's shared memory, a thread's local memory.
constexpr std::uint64_t kMostArgumentBytes = 32764, kMostSharedBytes = 227 * 1024, kMostLocalBytes = 512 * 1024;

Width width_of(std::string_view type) {
  if (type == ".pred") return 1;
  for (const Width width : {16, 32, 64})
    for (const char kind : {'b', 'u', 's', 'f'})
      if (type == fmt::format(".{}{}", kind, width)) return width;
  return 0;
}

// %r12 is the 12th of %r<N>.
struct Numbered {
  std::string_view front;
  std::uint32_t number;
};
std::optional<Numbered> numbered(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  std::uint64_t number = 0;
  std::uint8_t width = 0;
  if (digits == name.size() || !parse_number(name.substr(digits), number, width) || number >= kMostRegisters) return {};
  return Numbered{name.substr(0, digits), static_cast<std::uint32_t>(number)};
}

}  // namespace

class KernelReader {
 public:
  KernelReader(const ModuleText& module, std::size_t place)
      : module_(module), cursor_(module.tokens_, module.name_, place) {}

  KernelText run() {
    kernel_.name = cursor_.word("a kernel's name");
    read_parameters();
    while (!cursor_.is("{")) read_performance_directive();
    read_block();
    for (const Statement& statement : kernel_.statements)
      for (const Operand& operand : statement.operands)
        for (const Atom& atom : operand.atoms)
          if (atom.kind == AtomKind::label && !kernel_.labels.contains(atom.name))
            fail_user("[{}:{}] {} is neither a label nor a name that was declared", module_.name_, statement.line,
                      atom.name);
    return std::move(kernel_);
  }

 private:
  struct Registers {
    Width width;
    std::uint32_t first, count;
  };
  struct Scope {
    std::map<std::string_view, Registers> single, several;
  };

  std::uint64_t place(std::uint64_t& used, const Declared& declared) {
    used = (used + declared.alignment - 1) / declared.alignment * declared.alignment;
    const std::uint64_t offset = used;
    used += declared.bytes;
    return offset;
  }
  void declare(Space space, std::uint64_t& used, const Declared& declared) {
    for (const Variable& variable : kernel_.variables)
      if (variable.name == declared.name) cursor_.fail(fmt::format("{} is declared twice", declared.name));
    kernel_.variables.push_back({std::string(declared.name), space, place(used, declared), declared.bytes});
    const std::uint64_t most = space == Space::parameter ? kMostArgumentBytes
                               : space == Space::shared  ? kMostSharedBytes
                                                         : kMostLocalBytes;
    if (used > most) cursor_.fail(fmt::format("{} bytes are more than the {} there are", used, most));
  }

  void read_parameters() {
    cursor_.expect("(");
    while (!cursor_.take_if(")")) {
      if (!kernel_.variables.empty()) cursor_.expect(",");
      cursor_.expect(".param");
      declare(Space::parameter, kernel_.argument_bytes, take_declared(cursor_));
    }
  }

  void read_performance_directive() {
    if (cursor_.take_if(".minnctapersm")) {
      cursor_.count("a number of blocks");
      return;
    }
    cursor_.expect(".maxntid");
    std::uint64_t threads = cursor_.count("a number of threads");
    while (cursor_.take_if(",")) threads *= cursor_.count("a number of threads") & 0xffff;
    if (threads == 0 || threads > 1024) cursor_.fail("a block has 1 to 1024 threads");
    kernel_.most_threads = static_cast<std::uint32_t>(threads);
  }

  void read_block() {
    cursor_.expect("{");
    if (scopes_.size() == 16) cursor_.fail("blocks are nested too deep");
    scopes_.emplace_back();
    while (!cursor_.take_if("}")) read_item();
    scopes_.pop_back();
  }

  void read_item() {
    if (cursor_.is("{")) {
      read_block();
    } else if (cursor_.take_if(".reg")) {
      read_registers();
    } else if (cursor_.take_if(".shared")) {
      declare(Space::shared, kernel_.shared_bytes, take_declared(cursor_));
      cursor_.expect(";");
    } else if (cursor_.take_if(".local")) {
      declare(Space::local, kernel_.local_bytes, take_declared(cursor_));
      cursor_.expect(";");
    } else if (cursor_.take_if(".pragma")) {
      read_pragma();
    } else {
      read_label_or_statement();
    }
  }

  // Directives for the assembler only.
  void read_pragma() {
    const Token& token = cursor_.take();
    if (token.kind != TokenKind::string || (token.text != "nounroll" && !token.text.starts_with("used_bytes_mask ")))
      cursor_.fail(fmt::format("no pragma {} is known", token.text));
    cursor_.expect(";");
  }

  void read_registers() {
    const Width width = width_of(cursor_.word("a type"));
    if (width == 0) cursor_.fail("registers are of .pred or of 16, 32 or 64 bits");
    do {
      const std::string_view name = cursor_.word("a register's name");
      const auto first = static_cast<std::uint32_t>(kernel_.registers.size());
      std::uint64_t count = 1;
      auto* names = &scopes_.back().single;
      if (cursor_.take_if("<")) {
        count = cursor_.count("a number of registers");
        cursor_.expect(">");
        names = &scopes_.back().several;
      }
      if (first + count > kMostRegisters) cursor_.fail("there are too many registers");
      if (!names->emplace(name, Registers{width, first, static_cast<std::uint32_t>(count)}).second)
        cursor_.fail(fmt::format("{} is declared twice", name));
      kernel_.registers.resize(first + count, width);
    } while (cursor_.take_if(","));
    cursor_.expect(";");
  }

  void read_label_or_statement() {
    const Token front = cursor_.peek();
    Statement statement{.line = front.line, .text = {}, .guard = {}, .opcode = {}, .operands = {}};
    if (cursor_.take_if("@")) {
      statement.guard = read_predicate();
    }
    statement.opcode = cursor_.word("a declaration, a label or an instruction");
    if (!statement.guard && cursor_.take_if(":")) {
      const auto next = static_cast<std::uint32_t>(kernel_.statements.size());
      if (!kernel_.labels.emplace(statement.opcode, next).second)
        cursor_.fail(fmt::format("label {} stands twice", statement.opcode));
      return;
    }
    while (!cursor_.is(";")) {
      if (!statement.operands.empty()) cursor_.expect(",");
      statement.operands.push_back(read_operand());
    }
    const std::string_view end = cursor_.take().text;
    statement.text = {front.text.data(), static_cast<std::size_t>(end.data() - front.text.data())};
    kernel_.statements.push_back(std::move(statement));
  }

  Atom read_predicate() {
    const bool is_negated = cursor_.take_if("!");
    Atom atom = read_atom();
    if (atom.kind != AtomKind::reg || atom.width != 1) cursor_.fail("! and @ are of predicates");
    atom.is_negated = is_negated;
    return atom;
  }

  Operand read_operand() {
    Operand operand;
    if (cursor_.take_if("{")) {
      operand.shape = OperandShape::tuple;
      do operand.atoms.push_back(read_atom());
      while (operand.atoms.size() < 8 && cursor_.take_if(","));
      cursor_.expect("}");
    } else if (cursor_.take_if("[")) {
      operand.shape = OperandShape::address;
      operand.atoms.push_back(read_atom());
      if (cursor_.take_if("+")) operand.offset = read_offset();
      cursor_.expect("]");
    } else if (cursor_.is("!")) {
      operand.atoms.push_back(read_predicate());
    } else {
      operand.atoms.push_back(read_atom());
      if (cursor_.take_if("|")) {
        operand.shape = OperandShape::pair;
        operand.atoms.push_back(read_atom());
      }
    }
    return operand;
  }

  std::int64_t read_offset() {
    const bool is_negative = cursor_.take_if("-");
    const auto offset = static_cast<std::int64_t>(cursor_.count("an offset"));
    return is_negative ? -offset : offset;
  }

  Atom read_atom() {
    const bool is_negative = cursor_.take_if("-");
    const std::string_view word = cursor_.word("an operand");
    Atom atom{.name = word};
    if (parse_number(word, atom.bits, atom.width)) {
      if (is_negative) {
        if (atom.width != 0 || atom.bits > std::uint64_t{1} << 63) cursor_.fail(fmt::format("no number -{}", word));
        atom.bits = -atom.bits;
      }
      return atom;
    }
    if (is_negative) cursor_.fail(fmt::format("no number -{}", word));
    resolve(atom);
    return atom;
  }

  void resolve(Atom& atom) {
    atom.width = 64;
    if (atom.name == "_") {
      atom.kind = AtomKind::nowhere;
    } else if (find_register(atom)) {
      atom.kind = AtomKind::reg;
    } else if (find_variable(atom)) {
      atom.kind = AtomKind::variable;
    } else {
      // Labels may be defined later; `run` looks them up.
      atom.kind = atom.name.starts_with("%") ? AtomKind::special : AtomKind::label;
    }
  }

  bool find_register(Atom& atom) const {
    const std::optional<Numbered> numbers = numbered(atom.name);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->single.find(atom.name); found != scope->single.end()) {
        atom.index = found->second.first;
        atom.width = found->second.width;
        return true;
      }
      if (!numbers) continue;
      const auto found = scope->several.find(numbers->front);
      if (found == scope->several.end() || numbers->number >= found->second.count) continue;
      atom.index = found->second.first + numbers->number;
      atom.width = found->second.width;
      return true;
    }
    return false;
  }

  // A shared variable of the module gets its address in a kernel when the kernel first names it.
  bool find_variable(Atom& atom) {
    for (std::size_t i = 0; i < kernel_.variables.size(); ++i) {
      atom.index = static_cast<std::uint32_t>(i);
      if (kernel_.variables[i].name == atom.name) return true;
    }
    const auto found = module_.shared_.find(atom.name);
    if (found == module_.shared_.end()) return false;
    atom.index = static_cast<std::uint32_t>(kernel_.variables.size());
    declare(Space::shared, kernel_.shared_bytes, {atom.name, found->second.alignment, found->second.bytes});
    return true;
  }

  const ModuleText& module_;
  Cursor cursor_;
  KernelText kernel_;
  std::vector<Scope> scopes_;
};

KernelText ModuleText::kernel(const std::string& kernel) const {
  const auto found = kernels_.find(kernel);
  USER_CHECK(found != kernels_.end(), "[{}] has no kernel {}", name_, kernel);
  return KernelReader(*this, found->second).run();
}

}  // namespace weft::ptx
