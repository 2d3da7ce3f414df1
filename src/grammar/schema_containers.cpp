#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_reader.h"

namespace weft::grammar {
namespace {

// Members that may be absent and whose order is in one automaton, which is faster for few of them.
constexpr std::size_t kMostListed = 32;

// The value of a keyword; an empty object or list without it.
const Json& object_at(const Json& schema, const char* name) {
  static const Json kNone = Json::object();
  return schema.contains(name) ? schema[name] : kNone;
}
const Json& list_at(const Json& schema, const char* name) {
  static const Json kNone = Json::array();
  return schema.contains(name) ? schema[name] : kNone;
}

}  // namespace

Expression SchemaReader::array_of(const Json& schema, const std::string& path) {
  Json first = Json::array(), others = true;
  if (schema.contains("items") && schema["items"].is_array()) {  // draft 7
    first = schema["items"];
    if (schema.contains("additionalItems")) others = schema["additionalItems"];
  } else {
    if (schema.contains("prefixItems")) first = schema["prefixItems"];
    if (schema.contains("items")) others = schema["items"];
  }
  const int least = count_of(schema, "minItems", 0), count = static_cast<int>(first.size());
  int most = count_of(schema, "maxItems", kUnbounded);
  if (others == false) most = most == kUnbounded ? count : std::min(most, count);
  if (most != kUnbounded && most < least)
    fail_schema(path, "no list is as long as minItems, maxItems and items ask for");
  const bool needs_others = most == kUnbounded || most > count;
  const Expression item = needs_others ? value_of(others, path + "/items") : choice_of({});
  if (count == 0) {
    if (least == 0 && most == kUnbounded && is_unconstrained(others)) return parts_.array();
    return call_of(grammar_.add(path, parts_.list('[', item, least, most, ']'), keywords_about(schema, of_array)));
  }
  return call_of(grammar_.add(path, listed_items(first, item, least, most, path), keywords_about(schema, of_array)));
}

// "[", the items of a list of schemas, and others. The list may end after any number of items that is allowed.
Expression SchemaReader::listed_items(const Json& first, const Expression& item, int least, int most,
                                      const std::string& path) {
  const int count = static_cast<int>(first.size());
  const Expression comma = sequence_of({text_of(","), parts_.after_comma()});
  const Expression end = sequence_of({parts_.before_close(), text_of("]")});
  const int others = most == kUnbounded ? kUnbounded : std::max(0, most - count);
  Expression rest = sequence_of({repeat_of(sequence_of({comma, item}), std::max(0, least - count), others), end});
  for (int i = count; i-- > 0;) {
    const Expression begin = i == 0 ? parts_.after_open() : comma;
    const Expression next = value_of(first[static_cast<std::size_t>(i)], fmt::format("{}/prefixItems/{}", path, i));
    std::vector<Expression> ways;
    if (most == kUnbounded || i < most) ways.push_back(sequence_of({begin, next, rest}));
    if (i >= least) ways.push_back(i == 0 ? text_of("]") : end);
    rest = choice_of(std::move(ways));
  }
  return sequence_of({text_of("["), rest});
}

// A key that is not one of these, as an expression with its value.
Expression SchemaReader::other_members(const Json& schema, const Expression& known_keys, const std::string& path) {
  const Json value = additional_of(schema);
  const Expression any = repeat_of(json_encoded(complement({})), 0, kUnbounded);
  const Expression key = known_keys == nullptr
                             ? parts_.string()
                             : call_of(grammar_.add(path, quoted(without_of(any, known_keys)), "additionalProperties"));
  return pair_of(key, value_of(value, path + "/additionalProperties"));
}

Json SchemaReader::additional_of(const Json& schema) const {
  if (schema.contains("additionalProperties")) return schema["additionalProperties"];
  return !(options_.closes_objects && schema.contains("properties"));
}

Expression SchemaReader::pair_of(const Expression& key, const Expression& value) {
  return sequence_of({key, text_of(":"), parts_.after_colon(), value});
}

// What the value of a key must follow: its own schema, and those of the patterns that match it.
Json SchemaReader::schema_of_key(const Json& schema, const std::string& name, const Json* own,
                                 const std::string& path) {
  std::vector<Json> all;
  if (own != nullptr) all.push_back(*own);
  for (const auto& [pattern, value] : object_at(schema, "patternProperties").items())
    if (matches_pattern(name, pattern, false, path + "/patternProperties/" + pattern)) all.push_back(value);
  if (all.empty()) return additional_of(schema);
  return all.size() == 1 ? all[0] : Json{{"allOf", all}};
}

std::vector<SchemaReader::Member> SchemaReader::members_of(const Json& schema, const std::string& path) {
  const Json& properties = object_at(schema, "properties");
  std::set<std::string> required, named;
  for (const Json& name : list_at(schema, "required")) {
    if (!name.is_string()) fail_schema(path, "required must be a list of texts");
    required.insert(name.get<std::string>());
  }
  std::vector<Member> members;
  const auto add = [&](const std::string& name, const Json& value, bool is_required) {
    members.push_back(
        {name, pair_of(text_of(json_text(name)), value_of(value, path + "/properties/" + name)), is_required});
  };
  for (const auto& [name, value] : properties.items()) {
    named.insert(name);
    add(name, schema_of_key(schema, name, &value, path), required.contains(name));
  }
  for (const Json& item : list_at(schema, "required")) {
    const auto& name = item.get_ref<const std::string&>();
    if (!named.insert(name).second) continue;
    const Json value = schema_of_key(schema, name, nullptr, path);
    if (value == false) fail_schema(path, fmt::format("required has {}, which may not be there", quote(name)));
    add(name, value, true);
  }
  return members;
}

Expression SchemaReader::object_of(const Json& schema, const std::string& path) {
  const int least = count_of(schema, "minProperties", 0), most = count_of(schema, "maxProperties", kUnbounded);
  const std::vector<Member> members = members_of(schema, path);
  const bool has_pattern = !object_at(schema, "patternProperties").empty();
  if (members.empty()) {
    const std::optional<Expression> any = free_member(schema, nullptr, path);
    // A repeated key is one member of the document, but a grammar cannot compare keys.
    if (least > 1) fail_schema(path, "minProperties above 1 is not supported");
    if (!any && least > 0) fail_schema(path, "minProperties asks for members, but none is allowed");
    if (most != kUnbounded && most < least) fail_schema(path, "maxProperties must be at least minProperties");
    const bool is_any = least == 0 && most == kUnbounded && !has_pattern && is_unconstrained(additional_of(schema));
    if (is_any) return parts_.object();
    return call_of(grammar_.add(path, parts_.list('{', any.value_or(choice_of({})), least, any ? most : 0, '}'),
                                keywords_about(schema, of_object)));
  }
  const bool is_closed = additional_of(schema) == false && !has_pattern;
  const MemberCounts counts = member_counts(members, is_closed, least, most, path);
  std::optional<Expression> others;
  if (!is_closed) {
    std::vector<Expression> keys;
    for (const Member& member : members) keys.push_back(json_encoded(text_of(member.name)));
    others = free_member(schema, choice_of(std::move(keys)), path);
  }
  const bool is_long = counts.optional > kMostListed;
  if (is_long && (counts.least > 0 || counts.most != kUnbounded))
    fail_schema(path, fmt::format("minProperties and maxProperties beside more than {} properties that may be absent "
                                  "are not supported",
                                  kMostListed));
  const std::string keywords = keywords_about(schema, of_object);
  return call_of(grammar_.add(
      path, is_long ? halved_members(members, others, path, keywords) : listed_members(members, others, counts, path),
      keywords));
}

// What is left to count: required members count by themselves.
SchemaReader::MemberCounts SchemaReader::member_counts(const std::vector<Member>& members, bool is_closed, int least,
                                                       int most, const std::string& path) const {
  const auto count = static_cast<int>(members.size());
  const auto needed = static_cast<int>(
      std::count_if(members.begin(), members.end(), [](const Member& member) { return member.is_required; }));
  if (most != kUnbounded && most < std::max(least, needed))
    fail_schema(path, "maxProperties must be at least minProperties and the number of required properties");
  if (is_closed && least > count) fail_schema(path, "minProperties asks for more members than are allowed");
  // A repeated key is one member of the document, but a grammar cannot compare keys.
  if (!is_closed && least > std::max(needed, 1))
    fail_schema(path,
                "minProperties above 1 and the number of required properties is not supported where other keys "
                "are allowed");
  const MemberCounts counts{.least = least <= needed ? 0 : least,
                            .most = is_closed && most >= count ? kUnbounded : most,
                            .optional = members.size() - static_cast<std::size_t>(needed)};
  if (static_cast<std::size_t>(std::max(counts.least, counts.most)) > kMostStates / (members.size() + 1) &&
      counts.most != kUnbounded)
    fail_schema(path, fmt::format("minProperties, maxProperties needs more than {} states", kMostStates));
  return counts;
}

// Any member whose key is none of the named ones, which may be null; nullopt if there is no such member.
std::optional<Expression> SchemaReader::free_member(const Json& schema, const Expression& named,
                                                    const std::string& path) {
  std::vector<Expression> ways, keys;
  std::vector<Json> values;
  for (const auto& [pattern, value] : object_at(schema, "patternProperties").items()) {
    const std::string where = path + "/patternProperties/" + pattern;
    const Expression all = pattern_of(pattern, where);
    const Expression key = named == nullptr ? all : without_of(all, named);
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (value != values[i] && matches_something(both_of(key, keys[i]), where, "patternProperties"))
        fail_schema(where, "another pattern matches some of the same keys, which is not supported");
    keys.push_back(key);
    values.push_back(value);
    if (named != nullptr && !matches_something(key, where, "patternProperties")) continue;
    ways.push_back(pair_of(call_of(grammar_.add(where, quoted(key), "patternProperties")), value_of(value, where)));
  }
  if (additional_of(schema) != false) {
    if (named != nullptr) keys.push_back(named);
    ways.push_back(other_members(schema, keys.empty() ? nullptr : choice_of(std::move(keys)), path));
  }
  if (ways.empty()) return std::nullopt;
  return choice_of(std::move(ways));
}

// "{", the members in their order, and others. There is a rule for each member and each number of members before it, as
// far as that matters, which jumps to those of the next, so that the automaton has few states however many members may
// be absent.
Expression SchemaReader::listed_members(const std::vector<Member>& members, const std::optional<Expression>& others,
                                        const MemberCounts& counts, const std::string& path) {
  const Expression comma = sequence_of({text_of(","), parts_.after_comma()});
  const Expression end = sequence_of({parts_.before_close(), text_of("}")});
  const int last = std::max({1, counts.least, counts.most});  // the numbers from here on are one
  const auto begin = [&](int before) { return before == 0 ? parts_.after_open() : comma; };
  const auto has_room = [&](int before) { return counts.most == kUnbounded || before < counts.most; };
  const auto after = [&](int before) { return static_cast<std::size_t>(std::min(before + 1, last)); };
  std::vector<int> next;  // by the number of members before
  for (int before = 0; before <= last; ++before) next.push_back(grammar_.add(path));
  for (int before = 0; before <= last; ++before) {
    std::vector<Expression> ways;
    if (before >= counts.least) ways.push_back(before == 0 ? text_of("}") : end);
    if (others && has_room(before)) ways.push_back(sequence_of({begin(before), *others, jump_to(next[after(before)])}));
    set_body(next[static_cast<std::size_t>(before)], choice_of(std::move(ways)));
  }
  for (std::size_t i = members.size(); i-- > 0;) {
    std::vector<int> rules;
    for (int before = 0; before <= last; ++before) {
      std::vector<Expression> ways;
      if (has_room(before)) ways.push_back(sequence_of({begin(before), members[i].pair, jump_to(next[after(before)])}));
      if (!members[i].is_required) ways.push_back(jump_to(next[static_cast<std::size_t>(before)]));
      rules.push_back(grammar_.add(path, choice_of(std::move(ways))));
    }
    next = std::move(rules);
  }
  return sequence_of({text_of("{"), jump_to(next[0])});
}

// The same for many members. An automaton has a state for each set of keys that may follow, which grow with the square
// of their number, so there is a rule for each half of the members, each quarter and so on: for at least one of them.
// After a member the text is at as many places as there are halves around it, and each key is in one rule.
Expression SchemaReader::halved_members(const std::vector<Member>& members, const std::optional<Expression>& others,
                                        const std::string& path, const std::string& keywords) {
  const auto rule = [&](Expression body) { return call_of(grammar_.add(path, std::move(body), keywords)); };
  const Expression comma = rule(sequence_of({text_of(","), parts_.after_comma()}));
  struct Part {
    Expression some;
    bool is_required;  // any of its members
  };
  std::vector<Part> parts;
  for (const Member& member : members) parts.push_back({rule(member.pair), member.is_required});
  while (parts.size() > 1) {
    std::vector<Part> joined;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
      const Part &a = parts[i], &b = parts[i + 1];
      const Expression next = sequence_of({comma, b.some});
      std::vector<Expression> ways = {sequence_of({a.some, b.is_required ? next : optional_of(next)})};
      if (!a.is_required) ways.push_back(b.some);
      joined.push_back({rule(choice_of(std::move(ways))), a.is_required || b.is_required});
    }
    if (parts.size() % 2 != 0) joined.push_back(parts.back());
    parts = std::move(joined);
  }
  const auto [some, is_required] = parts[0];
  std::vector<Expression> body = {parts_.after_open(), some, sequence_of({parts_.before_close(), text_of("}")})};
  std::vector<Expression> ways;
  if (others) {
    const Expression more = repeat_of(sequence_of({comma, *others}), 0, kUnbounded);
    body.insert(body.end() - 1, more);
    if (!is_required) ways.push_back(sequence_of({body[0], *others, more, body.back()}));
  }
  ways.push_back(sequence_of(std::move(body)));
  if (!is_required) ways.push_back(text_of("}"));
  return sequence_of({text_of("{"), choice_of(std::move(ways))});
}

}  // namespace weft::grammar
