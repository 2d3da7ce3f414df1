#pragma once

// The parsing of calls that the parsers of graphs and of patterns share.

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph_cursor.h"
#include "ir/op.h"
#include "tensor/text_cursor.h"

namespace weft {

// Parses the name after `%`: letters, digits, `_` and `.`; it does not begin with `.`.
std::string parse_value_name(GraphCursor& cursor);

// Parses a decimal integer with an optional sign.
std::int64_t parse_number(GraphCursor& cursor);

// Fails unless a node may end here: at the end of a line, before `}`, or at the end of the text.
void expect_end_of_node(GraphCursor& cursor);

// Fails when the op has no attribute of this name, or when it is in `given` already.
void check_attribute_name(const GraphCursor& cursor, const Op* op, const std::string& op_name, const std::string& key,
                          const NamedAttributes& given);

// Appends `absent` for each trailing optional tensor that is not in the text; fails when the operands do not fit the
// op's signature. An absent operand is one that equals `absent`.
template <class Operand>
void complete_operands(const GraphCursor& cursor, const Op& op, std::vector<Operand>& operands, const Operand& absent) {
  const std::vector<Parameter>& parameters = op.schema.parameters;
  const std::size_t tensors = op.schema.tensor_count();
  const bool variadic = tensors > 0 && parameters[tensors - 1].type == ParameterType::tensor_list;
  if (!variadic && operands.size() > tensors)
    cursor.fail(fmt::format("[{}] takes {} tensors, but {} are given", op.name, tensors, operands.size()));
  while (!variadic && operands.size() < tensors) {
    const Parameter& parameter = parameters[operands.size()];
    if (!parameter.optional) cursor.fail(fmt::format("[{}] {} must be given", op.name, parameter.name));
    operands.push_back(absent);
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Parameter& parameter = parameters[std::min(i, tensors - 1)];
    if (operands[i] == absent && !parameter.optional)
      cursor.fail(fmt::format("[{}] {} must be a value", op.name, parameter.name));
  }
}

// Runs `body`. Puts the file, line and column of a UserError before its message: those where its text could not be
// read, or the cursor's.
template <class Body>
void located(const GraphCursor& cursor, Body&& body) {
  try {
    body();
  } catch (const ParseError& error) {
    cursor.fail_at(error.position(), error.reason());
  } catch (const UserError& error) {
    cursor.fail(error.what());
  }
}

}  // namespace weft
