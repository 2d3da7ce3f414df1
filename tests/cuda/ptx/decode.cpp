// From the text of a kernel to executable instructions: the opcode and operands of each are looked up in
// `operations()`.

#include <algorithm>

#include "base/error.h"
#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

Width least_width(char letter) {
  switch (letter) {
    case 'p':
      return 1;
    case 'B':
      return 8;
    case 'h':
    case 'H':
      return 16;
    case 'w':
    case 'W':
      return 32;
    default:
      return 64;
  }
}

std::optional<Special> special_of(std::string_view name) {
  static const std::map<std::string_view, Special> kSpecials = {
      {"%tid.x", Special::thread},    {"%ntid.x", Special::threads},    {"%ctaid.x", Special::block},
      {"%nctaid.x", Special::blocks}, {"%ctaid.y", Special::block_row}, {"%nctaid.y", Special::block_rows},
      {"%laneid", Special::lane},     {"%tid.y", Special::zero},        {"%tid.z", Special::zero},
      {"%ctaid.z", Special::zero},    {"%ntid.y", Special::one},        {"%ntid.z", Special::one},
      {"%nctaid.z", Special::one}};
  const auto found = kSpecials.find(name);
  return found == kSpecials.end() ? std::optional<Special>() : found->second;
}

class Decoder {
 public:
  Decoder(const KernelText& kernel, const std::string& module) : kernel_(kernel), module_(module) {}

  Program run() {
    program_.name = kernel_.name;
    program_.argument_bytes = kernel_.argument_bytes;
    program_.shared_bytes = kernel_.shared_bytes;
    program_.local_bytes = kernel_.local_bytes;
    program_.most_threads = kernel_.most_threads;
    program_.registers = static_cast<std::uint32_t>(kernel_.registers.size());
    if (kernel_.statements.empty()) fail_user("[{}] {} has no instruction", module_, kernel_.name);
    program_.code.reserve(kernel_.statements.size());
    for (const Statement& statement : kernel_.statements) program_.code.push_back(instruction(statement));
    return std::move(program_);
  }

 private:
  Instruction instruction(const Statement& statement) {
    const auto found = operations().find(std::string(statement.opcode));
    if (found == operations().end())
      fail_user("[{}:{}] no instruction {} is known: {}", module_, statement.line, statement.opcode, statement.text);
    for (const Operation& operation : found->second) {
      Instruction one{.execute = operation.execute, .function = operation.function, .access = operation.access};
      if (!bind(operation.signature, statement.operands, one)) continue;
      one.line = statement.line;
      one.text = statement.text;
      if (statement.guard) {
        one.guard = static_cast<std::int32_t>(statement.guard->index);
        one.guard_is_negated = statement.guard->is_negated;
      }
      return one;
    }
    fail_user("[{}:{}] {} does not take these operands: {}", module_, statement.line, statement.opcode, statement.text);
  }

  // Whether the operands match the signature; they are then in `one`.
  bool bind(std::string_view signature, const std::vector<Operand>& operands, Instruction& one) {
    std::size_t at = 0;
    bool is_target = true;
    for (std::size_t i = 0; i < signature.size(); ++i) {
      if (signature[i] == ':') {
        is_target = false;
        continue;
      }
      if (at == operands.size()) return false;
      const Operand& operand = operands[at++];
      const bool is_tuple = signature[i] == '{', is_pair = i + 1 < signature.size() && signature[i + 1] == '|';
      const OperandShape wanted = is_tuple              ? OperandShape::tuple
                                  : is_pair             ? OperandShape::pair
                                  : signature[i] == 'a' ? OperandShape::address
                                                        : OperandShape::plain;
      if (operand.shape != wanted) return false;
      std::string_view letters = signature.substr(i, 1);
      if (is_tuple) {
        letters = signature.substr(i + 1, signature.find('}', i) - i - 1);
        i += letters.size() + 1;
      }
      std::string pair;
      if (is_pair) {
        pair = {signature[i], signature[i + 2]};
        letters = pair;
        i += 2;
      }
      if (letters.size() != operand.atoms.size()) return false;
      for (std::size_t atom = 0; atom < letters.size(); ++atom)
        if (!bind_atom(letters[atom], operand.atoms[atom], is_target, one)) return false;
      if (wanted == OperandShape::address) one.offset = operand.offset;
    }
    return at == operands.size();
  }

  bool bind_atom(char letter, const Atom& atom, bool is_target, Instruction& one) {
    if (letter == 'l') {
      if (atom.kind != AtomKind::label) return false;
      one.target = kernel_.labels.at(atom.name);
      return true;
    }
    if (letter == '0') return atom.kind == AtomKind::number && atom.bits == 0;
    std::vector<std::uint32_t>& slots = is_target ? one.to : one.from;
    if (letter == 'a' || letter == 'v') return bind_place(letter, atom, slots, one);
    const Width width = least_width(letter);
    const bool at_least = letter >= 'A' && letter <= 'Z';
    switch (atom.kind) {
      case AtomKind::reg:
        if (atom.is_negated) return false;
        if (at_least ? atom.width < std::max<Width>(width, 16) : atom.width != width) return false;
        slots.push_back(atom.index);
        return true;
      case AtomKind::nowhere:
        if (!is_target) return false;
        slots.push_back(new_preset({}));
        return true;
      case AtomKind::number:
        if (is_target || (atom.width != 0 && atom.width != width)) return false;
        if (width == 1 && atom.bits + 1 > 2) return false;  // -1, 0, 1
        slots.push_back(preset({.bits = width == 64 ? atom.bits : atom.bits & ((std::uint64_t{1} << width) - 1)}));
        return true;
      case AtomKind::special: {
        const std::optional<Special> special = special_of(atom.name);
        if (is_target || width != 32 || !special) return false;
        slots.push_back(preset({.special = special}));
        return true;
      }
      default:
        return false;
    }
  }

  // [a], or the address of a variable. Those of parameters, shared and local memory count from its beginning.
  bool bind_place(char letter, const Atom& atom, std::vector<std::uint32_t>& slots, Instruction& one) {
    if (atom.kind == AtomKind::variable) {
      const Variable& variable = kernel_.variables[atom.index];
      if (letter == 'a' && one.access.space != variable.space) return false;
      slots.push_back(preset({.bits = variable.offset}));
      return true;
    }
    // Shared memory may be addressed in 32 bits.
    const bool is_narrow = atom.width == 32 && one.access.space == Space::shared;
    if (letter == 'v' || atom.kind != AtomKind::reg || (atom.width != 64 && !is_narrow)) return false;
    slots.push_back(atom.index);
    return true;
  }

  std::uint32_t new_preset(const Preset& wanted) {
    program_.presets.push_back(wanted);
    return static_cast<std::uint32_t>(program_.registers + program_.presets.size() - 1);
  }
  // One for all that want it.
  std::uint32_t preset(const Preset& wanted) {
    const std::uint64_t bits = wanted.special ? static_cast<std::uint64_t>(*wanted.special) : wanted.bits;
    const auto [found, is_new] = presets_.emplace(std::pair{wanted.special.has_value(), bits}, 0);
    if (is_new) found->second = new_preset(wanted);
    return found->second;
  }

  const KernelText& kernel_;
  const std::string& module_;
  Program program_;
  std::map<std::pair<bool, std::uint64_t>, std::uint32_t> presets_;  // their slots
};

}  // namespace

const Operations& operations() {
  static const Operations kTable = [] {
    Operations table;
    add_float_operations(table);
    add_packed_operations(table);
    add_integer_operations(table);
    add_logic_operations(table);
    add_conversions(table);
    add_memory_operations(table);
    add_control_operations(table);
    add_matrix_operations(table);
    return table;
  }();
  return kTable;
}

Program decode(const KernelText& kernel, const std::string& module) { return Decoder(kernel, module).run(); }

}  // namespace weft::ptx
