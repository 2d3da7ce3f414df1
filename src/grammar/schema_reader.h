#pragma once

// Makes the rules of one schema. Where it recurses, `path` is the JSON pointer of the schema at hand.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/budget.h"
#include "grammar/json_schema.h"

namespace weft::grammar {

class SchemaReader {
 public:
  SchemaReader(Grammar& grammar, JsonParts& parts, const Json& document, const SchemaOptions& options)
      : grammar_(grammar), parts_(parts), document_(document), options_(options) {}

  Expression value_of(const Json& schema, const std::string& path);

 private:
  // A member of an object that is named by the schema.
  struct Member {
    std::string name;
    Expression pair;
    bool is_required;
  };

  // How many members must and may be written, as far as a grammar has to count them.
  struct MemberCounts {
    int least, most;       // 0 and kUnbounded: any number
    std::size_t optional;  // members that may be absent
  };

  Expression any_value_of(const Json& schema, const std::string& path);
  Expression typed_value_of(const Json& schema, const std::string& path);
  const Json& target_of(const std::string& reference, const std::string& path) const;
  Expression reference_of(const Json& schema, const std::string& path);
  Json resolved(const Json& schema, const std::string& path) const;
  Json with_all(const Json& schema, const std::string& path) const;
  Expression branches_of(const Json& schema, const char* name, const std::string& path);
  void check_one_of(const std::vector<Json>& branches, const std::string& path) const;
  Expression listed_value_of(const Json& schema, const std::string& path);
  Expression number_of(const Json& schema, bool is_integer, const std::string& path);
  Expression string_of(const Json& schema, const std::string& path);
  Expression pattern_of(const std::string& pattern, const std::string& path) const;
  Expression format_of(const std::string& format, const std::string& path) const;
  void check_not_empty(const Expression& expression, const std::string& path, const std::string& keywords,
                       const char* sentence);
  bool matches_something(const Expression& expression, const std::string& path, const std::string& keywords);

  // UserError with the path if the automaton is too large.
  Automaton automaton_of(const Expression& expression, const std::string& path, const std::string& keywords);

  // schema_values.cpp
  bool follows(const Json& value, const Json& schema, const std::string& path);
  bool follows_schemas(const Json& value, const Json& schema, const std::string& path);
  bool follows_type(const Json& value, const Json& schema, const std::string& path);
  bool follows_items(const Json& value, const Json& schema, const std::string& path);
  bool follows_members(const Json& value, const Json& schema, const std::string& path);
  bool matches_pattern(const std::string& text, const std::string& pattern, bool is_format, const std::string& path);

  // schema_containers.cpp
  Expression array_of(const Json& schema, const std::string& path);
  Expression listed_items(const Json& first, const Expression& item, int least, int most, const std::string& path);
  Expression other_members(const Json& schema, const Expression& known_keys, const std::string& path);
  Json additional_of(const Json& schema) const;
  Expression pair_of(const Expression& key, const Expression& value);
  Json schema_of_key(const Json& schema, const std::string& name, const Json* own, const std::string& path);
  std::vector<Member> members_of(const Json& schema, const std::string& path);
  Expression object_of(const Json& schema, const std::string& path);
  std::optional<Expression> free_member(const Json& schema, const Expression& named, const std::string& path);
  MemberCounts member_counts(const std::vector<Member>& members, bool is_closed, int least, int most,
                             const std::string& path) const;
  Expression listed_members(const std::vector<Member>& members, const std::optional<Expression>& others,
                            const MemberCounts& counts, const std::string& path);
  Expression halved_members(const std::vector<Member>& members, const std::optional<Expression>& others,
                            const std::string& path, const std::string& keywords);

  void set_body(int rule, Expression body) { grammar_.rules[static_cast<std::size_t>(rule)].body = std::move(body); }

  Grammar& grammar_;
  JsonParts& parts_;
  const Json& document_;
  const SchemaOptions& options_;
  std::map<std::string, int> references_;
  std::map<std::string, int> strings_;         // rules, by the keywords about strings
  std::map<std::string, Automaton> automata_;  // of patterns and formats, for listed values
  Budget budget_;
  int depth_ = 0, schemas_ = 0;
};

}  // namespace weft::grammar
