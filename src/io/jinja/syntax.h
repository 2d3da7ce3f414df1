#pragma once

// A parsed template: trees of statements and expressions, nested at most kMaxNesting deep.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/jinja/arithmetic.h"
#include "io/jinja/value.h"

namespace weft::jinja {

struct Filter;
struct Test;
struct Statement;

enum class ExpressionKind : std::uint8_t {
  constant,       // value
  variable,       // name
  list,           // operands
  tuple,          // operands
  dict,           // operands: key, value, key, value, ...
  attribute,      // operands[0].name
  item,           // operands[0][operands[1]]
  slice,          // operands[0][operands[1]:operands[2]:operands[3]], null where absent
  call,           // operands[0](arguments)
  filter,         // operands[0] | filter(arguments); null is the text of a filter block
  test,           // operands[0] is test(arguments)
  negative,       // -operands[0]
  positive,       // +operands[0]
  logical_not,    // not operands[0]
  logical_and,    // operands[0] and operands[1]
  logical_or,     // operands[0] or operands[1]
  calculation,    // operands[0] operators[0] operands[1]
  comparison,     // operands[0] operators[0] operands[1] operators[1] operands[2] ...
  concatenation,  // operands[0] ~ operands[1] ~ ...
  conditional,    // operands[0] if operands[1] else operands[2], which is null without else
};

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct ArgumentSyntax {
  enum class Form : std::uint8_t { positional, named, unpacked_list, unpacked_dict };
  Form form = Form::positional;
  std::string name;  // of a named argument
  ExpressionPtr value;
};

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  int line = 1;
  int depth = 1;
  std::string name;
  Value value;
  std::vector<ExpressionPtr> operands;
  std::vector<ArgumentSyntax> arguments;
  std::vector<Operator> operators;
  const Filter* filter = nullptr;
  const Test* test = nullptr;
};

// The target of an assignment.
struct Target {
  std::string name;
  std::string attribute;      // of a namespace called `name`; empty for a plain variable
  std::vector<Target> parts;  // if the value is unpacked; then `name` is empty
  bool is_unpacked = false;
  int line = 1;
};

using Block = std::vector<std::unique_ptr<const Statement>>;

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // the default; null: undefined if not given
};

// A macro, or the body of a call block.
struct MacroSyntax {
  std::string name;
  std::vector<Parameter> parameters;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  Block body;
};

struct Branch {
  ExpressionPtr condition;
  Block body;
};

enum class StatementKind : std::uint8_t {
  text,        // name
  output,      // expression
  if_chain,    // branches, otherwise
  for_loop,    // target in expression if condition (recursive): body, otherwise
  set,         // target = expression
  set_block,   // target = body through the filters of expression
  with,        // targets = expressions: body
  macro,       // macro
  call,        // expression with macro as its caller
  filter,      // body through the filters of expression
  generation,  // body
  break_loop,
  continue_loop,
};

struct Statement {
  StatementKind kind = StatementKind::text;
  int line = 1;
  std::string text;
  ExpressionPtr expression;
  ExpressionPtr condition;
  Target target;
  std::vector<Target> targets;
  std::vector<ExpressionPtr> expressions;
  std::vector<Branch> branches;
  Block body;
  Block otherwise;
  std::unique_ptr<const MacroSyntax> macro;
  bool is_recursive = false;
  bool uses_loop = false;  // whether the body of a loop uses `loop`
};

struct Program {
  Block body;
};

}  // namespace weft::jinja
