#include "io/jinja/parser.h"

#include <algorithm>
#include <string>

#include "io/jinja/expression_parser.h"
#include "io/jinja/text.h"
#include "io/jinja/token_stream.h"

namespace weft::jinja {

namespace {

class StatementParser {
 public:
  explicit StatementParser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_) {}

  std::unique_ptr<const Program> run() {
    auto program = std::make_unique<Program>();
    program->body = parse_block({}, "");
    return program;
  }

 private:
  using StatementPtr = std::unique_ptr<Statement>;

  StatementPtr make(StatementKind kind) const {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->line = tokens_.line();
    return statement;
  }

  // Parses statements up to one of the tags in `ends`, and stops at the name of that tag. `opener` is the tag that
  // requires an end; it is empty for the whole template.
  Block parse_block(std::initializer_list<std::string_view> ends, std::string_view opener) {
    const TokenStream::Level level(tokens_);
    Block block;
    for (;;) {
      switch (tokens_.current().kind) {
        case TokenKind::text: {
          StatementPtr text = make(StatementKind::text);
          text->text = tokens_.next().text;
          block.push_back(std::move(text));
          break;
        }
        case TokenKind::variable_begin: {
          tokens_.next();
          StatementPtr output = make(StatementKind::output);
          output->expression = expressions_.parse_tuple();
          tokens_.expect(TokenKind::variable_end);
          block.push_back(std::move(output));
          break;
        }
        case TokenKind::block_begin: {
          tokens_.next();
          const auto is_end = [&](std::string_view name) { return tokens_.at_name(name); };
          if (std::any_of(ends.begin(), ends.end(), is_end)) return block;
          if (StatementPtr statement = parse_statement()) block.push_back(std::move(statement));
          tokens_.expect(TokenKind::block_end);
          break;
        }
        default:
          if (!opener.empty()) tokens_.fail("the template ends inside '{}'", opener);
          return block;
      }
    }
  }

  // Parses the rest of the opening tag and the body. If there is only one possible end, also consumes its name.
  Block parse_body(std::initializer_list<std::string_view> ends, std::string_view opener) {
    tokens_.skip_symbol(":");
    tokens_.expect(TokenKind::block_end);
    const bool outer = expressions_.set_in_branch(opener == "if");
    Block body = parse_block(ends, opener);
    expressions_.set_in_branch(outer);
    if (ends.size() == 1) tokens_.next();
    return body;
  }

  StatementPtr parse_statement() {
    if (!tokens_.at(TokenKind::name))
      tokens_.fail("expected the name of a tag but found {}", describe(tokens_.current()));
    const std::string& name = tokens_.current().text;
    if (name == "if") return parse_if();
    if (name == "for") return parse_for();
    if (name == "set") return parse_set();
    if (name == "with") return parse_with();
    if (name == "macro") return parse_macro();
    if (name == "call") return parse_call();
    if (name == "filter") return parse_filter();
    if (name == "print") return parse_print();
    if (name == "generation") return parse_generation();
    if (name == "break") return parse_jump(StatementKind::break_loop);
    if (name == "continue") return parse_jump(StatementKind::continue_loop);
    tokens_.fail("unknown tag {}", quote(name));
  }

  StatementPtr parse_if() {
    StatementPtr statement = make(StatementKind::if_chain);
    std::string keyword = tokens_.next().text;
    while (keyword != "else" && keyword != "endif") {
      Branch branch;
      const bool outer = expressions_.set_in_branch(true);
      branch.condition = expressions_.parse_tuple(false);
      expressions_.set_in_branch(outer);
      branch.body = parse_body({"elif", "else", "endif"}, "if");
      statement->branches.push_back(std::move(branch));
      keyword = tokens_.next().text;
    }
    if (keyword == "else") statement->otherwise = parse_body({"endif"}, "if");
    return statement;
  }

  StatementPtr parse_for() {
    StatementPtr statement = make(StatementKind::for_loop);
    tokens_.next();
    statement->target = expressions_.parse_target(false);
    require_no_loop_name(statement->target);
    tokens_.expect_name("in");
    statement->expression = expressions_.parse_tuple(false, "recursive");
    if (tokens_.skip_name("if")) statement->condition = expressions_.parse();
    statement->is_recursive = tokens_.skip_name("recursive");
    const bool outer_use = std::exchange(expressions_.used().loop, false);
    ++loops_;
    statement->body = parse_body({"else", "endfor"}, "for");
    --loops_;
    statement->uses_loop = expressions_.used().loop;
    expressions_.used().loop |= outer_use;
    if (tokens_.next().text == "else") statement->otherwise = parse_body({"endfor"}, "for");
    return statement;
  }

  void require_no_loop_name(const Target& target) const {
    if (target.name == "loop") tokens_.fail("cannot assign to the special loop variable in a for loop");
    for (const Target& part : target.parts) require_no_loop_name(part);
  }

  StatementPtr parse_set() {
    StatementPtr statement = make(StatementKind::set);
    tokens_.next();
    statement->target = expressions_.parse_target(true);
    if (tokens_.skip_symbol("=")) {
      statement->expression = expressions_.parse_tuple();
      return statement;
    }
    statement->kind = StatementKind::set_block;
    statement->expression = expressions_.parse_filters_of_block(true);
    statement->body = parse_body({"endset"}, "set");
    return statement;
  }

  StatementPtr parse_with() {
    StatementPtr statement = make(StatementKind::with);
    tokens_.next();
    while (!tokens_.at(TokenKind::block_end)) {
      if (!statement->targets.empty()) tokens_.expect_symbol(",");
      Target target;
      target.line = tokens_.line();
      target.name = tokens_.expect_any_name();
      tokens_.expect_symbol("=");
      statement->targets.push_back(std::move(target));
      statement->expressions.push_back(expressions_.parse());
    }
    statement->body = parse_body({"endwith"}, "with");
    return statement;
  }

  std::vector<Parameter> parse_parameters() {
    std::vector<Parameter> parameters;
    tokens_.expect_symbol("(");
    while (!tokens_.at_symbol(")")) {
      Parameter parameter;
      parameter.name = tokens_.expect_any_name();
      if (tokens_.skip_symbol("=")) {
        parameter.otherwise = expressions_.parse();
      } else if (!parameters.empty() && parameters.back().otherwise != nullptr) {
        tokens_.fail("the parameter '{}' needs a default, as the one before it has one", parameter.name);
      }
      const auto is_same = [&](const Parameter& other) { return other.name == parameter.name; };
      if (std::any_of(parameters.begin(), parameters.end(), is_same))
        tokens_.fail("two parameters are called '{}'", parameter.name);
      parameters.push_back(std::move(parameter));
      if (!tokens_.skip_symbol(",")) break;
    }
    tokens_.expect_symbol(")");
    return parameters;
  }

  // Parses the body of a macro or call block and records which special names it uses. `break` and `continue` in the
  // body cannot refer to a loop outside it.
  void parse_macro_body(MacroSyntax& macro, std::string_view opener, std::string_view end) {
    const int outer_loops = std::exchange(loops_, 0);
    auto& used = expressions_.used();
    const auto outer_used = used;
    used.caller = used.varargs = used.kwargs = false;
    macro.body = parse_body({end}, opener);
    macro.uses_caller = used.caller;
    macro.uses_varargs = used.varargs;
    macro.uses_kwargs = used.kwargs;
    used.caller |= outer_used.caller;
    used.varargs |= outer_used.varargs;
    used.kwargs |= outer_used.kwargs;
    loops_ = outer_loops;
  }

  StatementPtr parse_macro() {
    StatementPtr statement = make(StatementKind::macro);
    tokens_.next();
    auto macro = std::make_unique<MacroSyntax>();
    macro->name = tokens_.expect_any_name();
    macro->parameters = parse_parameters();
    parse_macro_body(*macro, "macro", "endmacro");
    statement->macro = std::move(macro);
    return statement;
  }

  StatementPtr parse_call() {
    StatementPtr statement = make(StatementKind::call);
    tokens_.next();
    auto macro = std::make_unique<MacroSyntax>();
    macro->name = "caller";
    if (tokens_.at_symbol("(")) macro->parameters = parse_parameters();
    statement->expression = expressions_.parse();
    if (statement->expression->kind != ExpressionKind::call) tokens_.fail("a call block needs a call");
    parse_macro_body(*macro, "call", "endcall");
    statement->macro = std::move(macro);
    return statement;
  }

  StatementPtr parse_filter() {
    StatementPtr statement = make(StatementKind::filter);
    tokens_.next();
    statement->expression = expressions_.parse_filters_of_block(false);
    statement->body = parse_body({"endfilter"}, "filter");
    return statement;
  }

  StatementPtr parse_print() {
    StatementPtr statement = make(StatementKind::output);
    tokens_.next();
    statement->expression = expressions_.parse();
    return statement;
  }

  StatementPtr parse_generation() {
    StatementPtr statement = make(StatementKind::generation);
    tokens_.next();
    const int outer_loops = std::exchange(loops_, 0);
    statement->body = parse_body({"endgeneration"}, "generation");
    loops_ = outer_loops;
    return statement;
  }

  StatementPtr parse_jump(StatementKind kind) {
    StatementPtr statement = make(kind);
    if (loops_ == 0) tokens_.fail("'{}' outside of a loop", tokens_.current().text);
    tokens_.next();
    return statement;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int loops_ = 0;  // the number of loops around the current token
};

}  // namespace

std::unique_ptr<const Program> parse_template(std::string_view source) { return StatementParser(source).run(); }

}  // namespace weft::jinja
