#pragma once

// A kernel of a PTX module as it was written: declarations resolved to numbers, instructions not yet understood.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::ptx {

enum class Space : std::uint8_t { generic, global, parameter, shared, local };

// Bits of a register: 1 (a predicate), 16, 32, 64.
using Width = std::uint8_t;

struct Variable {
  std::string name;
  Space space = Space::shared;
  std::uint64_t offset = 0;  // in the block's shared memory, the thread's local memory or the parameters
  std::uint64_t bytes = 0;
};

enum class AtomKind : std::uint8_t { reg, special, number, variable, label, nowhere };

// One element of an operand.
struct Atom {
  AtomKind kind = AtomKind::number;
  std::uint32_t index = 0;  // of registers and variables of the kernel
  std::uint64_t bits = 0;   // of a number
  Width width = 64;         // of a register; of a number as it was written: 32 for 0f, 64 for 0d, 0 for a whole one
  std::string_view name;    // of a special register or label
  bool is_negated = false;  // !%p
};

enum class OperandShape : std::uint8_t { plain, tuple, pair, address };

struct Operand {
  OperandShape shape = OperandShape::plain;
  std::vector<Atom> atoms;  // one, but for {a, b, ...} and a|b
  std::int64_t offset = 0;  // [a + offset]
};

struct Statement {
  int line = 0;
  std::string_view text;
  std::optional<Atom> guard;  // @%p or @!%p
  std::string_view opcode;
  std::vector<Operand> operands;
};

struct KernelText {
  std::string name;
  std::uint64_t argument_bytes = 0;
  std::uint32_t most_threads = 1024;  // of a block
  std::vector<Width> registers;
  std::vector<Variable> variables;  // that the kernel names, the parameters first
  std::uint64_t shared_bytes = 0, local_bytes = 0;
  std::vector<Statement> statements;
  std::map<std::string_view, std::uint32_t> labels;  // the statement that follows
};

}  // namespace weft::ptx
