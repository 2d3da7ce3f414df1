#pragma once

// Parses the expressions of a template, with Jinja's precedence.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/jinja/syntax.h"
#include "io/jinja/token_stream.h"

namespace weft::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // Parses one expression. Without `with_condition`, it does not consume an `if` after the expression.
  ExpressionPtr parse(bool with_condition = true);
  // Parses one expression, or a tuple of expressions with commas between them. `end_name` is a name that ends the
  // tuple, such as "recursive".
  ExpressionPtr parse_tuple(bool with_condition = true, std::string_view end_name = {});
  // Parses `name(arguments) | name ...`, the filters of a block whose text follows. Null if `optional` and there is no
  // `|`.
  ExpressionPtr parse_filters_of_block(bool optional);

  // Parses a variable, or variables with commas between them. `with_namespace` also allows `name.attribute`.
  Target parse_target(bool with_namespace);

  // Whether the parser has read these names since the caller last cleared the flags.
  struct UsedNames {
    bool caller = false;
    bool varargs = false;
    bool kwargs = false;
    bool loop = false;
  };
  UsedNames& used() { return used_; }

  // Sets whether the expressions that follow are in a branch, and returns what was set. As in Jinja, an unknown filter
  // or test is an error when the template is parsed. In a branch, or in a conditional expression, it is one when it is
  // evaluated.
  bool set_in_branch(bool in_branch) { return std::exchange(in_branch_, in_branch); }

 private:
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_strings();
  ExpressionPtr parse_number();
  ExpressionPtr parse_parentheses();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr expression);
  ExpressionPtr parse_filters(ExpressionPtr expression);
  ExpressionPtr parse_attribute(ExpressionPtr object);
  ExpressionPtr parse_item(ExpressionPtr object);
  ExpressionPtr parse_slice_rest(ExpressionPtr object, ExpressionPtr start, int line);
  ExpressionPtr parse_call(ExpressionPtr callee);
  ExpressionPtr parse_filter(ExpressionPtr input);
  ExpressionPtr parse_test(ExpressionPtr subject);
  std::vector<ArgumentSyntax> parse_arguments();
  Target parse_target_part(bool with_namespace);
  bool at_tuple_end(std::string_view end_name) const;
  void note_unknown(int line, std::string_view kind, Expression& expression, std::string name);
  void require_known();

  TokenStream& tokens_;
  UsedNames used_;
  struct Unknown {
    int line;
    std::string text;
  };
  std::optional<Unknown> unknown_;  // the first unknown filter or test of the expression, outside conditional ones
  int depth_ = 0;                   // calls of parse() that have not returned
  bool in_branch_ = false;
};

}  // namespace weft::jinja
