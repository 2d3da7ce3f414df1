#pragma once

// A grammar: rules whose bodies are expressions over characters. Readers of schemas, patterns and grammar texts make
// it, and compile() (compiled_grammar.h) turns it into automata.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/characters.h"

namespace weft::grammar {

struct ExpressionNode;
// Never changes; expressions may share parts.
using Expression = std::shared_ptr<const ExpressionNode>;

enum class ExpressionKind : std::uint8_t {
  text,        // these bytes
  characters,  // one character of a set
  sequence,    // the parts one after the other
  choice,      // one of the parts; without parts it matches nothing
  repeat,      // the part, `least` to `most` times
  call,        // what the rule matches
  jump,        // the same, but only as the last thing of a rule's body: it makes loops without a stack
  both,        // what both parts match; neither may have calls
  without,     // what the first part matches and the second does not; neither may have calls
  // What the first part matches, if `least` to `most` of the text's beginnings, but the empty one, match the second
  // part. Only as the whole body of a rule; neither part may have calls.
  counted,
};

inline constexpr int kUnbounded = -1;

struct ExpressionNode {
  ExpressionKind kind = ExpressionKind::text;
  std::string text = {};
  Characters set = {};
  std::vector<Expression> parts = {};
  int rule = 0;             // call and jump
  int least = 0, most = 0;  // repeat and counted; most may be kUnbounded
};

Expression text_of(std::string bytes);
Expression one_of(Characters set);
Expression sequence_of(std::vector<Expression> parts);
Expression choice_of(std::vector<Expression> parts);
Expression repeat_of(Expression part, int least, int most);
Expression optional_of(Expression part);
// The item `least` to `most` times, but at least once, with the separator between two.
Expression separated(const Expression& item, const Expression& separator, int least, int most);
Expression call_of(int rule);
Expression jump_to(int rule);
Expression both_of(Expression a, Expression b);
Expression without_of(Expression a, Expression b);
Expression counted_of(Expression part, Expression beginnings, int least, int most);

struct Rule {
  std::string name;  // for messages
  Expression body;
  std::string keywords = {};  // of a schema, whose JSON pointer is the name then
  std::string document = {};  // what the schema is in, if there are several
};

struct Grammar {
  std::vector<Rule> rules;
  int root = 0;

  // A rule whose body is set later.
  int add(std::string name) {
    rules.push_back({.name = std::move(name), .body = nullptr});
    return static_cast<int>(rules.size()) - 1;
  }
  int add(std::string name, Expression body, std::string keywords = {}) {
    rules.push_back({.name = std::move(name), .body = std::move(body), .keywords = std::move(keywords)});
    return static_cast<int>(rules.size()) - 1;
  }
};

}  // namespace weft::grammar
