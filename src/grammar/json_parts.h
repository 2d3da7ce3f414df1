#pragma once

// The pieces of JSON texts (RFC 8259) as expressions, with bounded white space.

#include <optional>
#include <string>

#include "grammar/grammar.h"

namespace weft::grammar {

struct WhiteSpace {
  bool is_allowed = true;
  std::optional<std::string> pattern = std::nullopt;  // a regular expression in its stead, between any two tokens
};

// Within a string of JSON: each character of a text as itself or as an escape. What needs no escape is not written as
// \uHHHH where it is printable ASCII.
Expression json_encoded(const Expression& text);
Expression json_encoded(const Characters& set);
Expression quoted(Expression content);

// One for a grammar, whose rules it shares.
//
// White space that is not given as a pattern is none, or one space after a comma or a colon, or a line feed with up to
// 20 spaces where a pretty printer has one: never two line feeds, since models get lost in white space. For the same
// reason a number has at most 18 digits before the point and 17 after it.
class JsonParts {
 public:
  // UserError if the pattern matches what is no white space of JSON.
  JsonParts(Grammar& grammar, const WhiteSpace& white_space);

  Expression character();  // of a string, also as any escape
  Expression string();
  Expression characters();  // any number of them
  // Strings, quotes included, that the first expression matches, of `least` to `most` characters: the body of a rule.
  Expression bounded_string(Expression string, int least, int most);
  Expression integer();
  Expression number();
  Expression boolean() const { return choice_of({text_of("true"), text_of("false")}); }
  Expression null() const { return text_of("null"); }
  Expression object();  // of any members
  Expression array();   // of any values
  Expression value();

  Expression after_open();
  Expression before_close() { return after_open(); }
  Expression after_comma();
  Expression after_colon();

  // "{" and the least to the greatest number of members; of arrays the same with brackets.
  Expression list(char open, const Expression& item, int least, int most, char close);

 private:
  template <class MakeBody>
  Expression rule(std::optional<int>& known, const char* name, MakeBody make_body);
  Expression indent();

  Grammar& grammar_;
  bool has_white_space_;
  Expression pattern_;  // null without a pattern
  std::optional<int> character_, string_, integer_, number_, object_, array_, value_, indent_, space_;
};

}  // namespace weft::grammar
