#include "ir/pattern.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "tensor/dim_terms.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 7> kKindTexts = {"value", "int", "float", "bool", "str", "dtype", "dim"};
constexpr std::array<std::string_view, 5> kRelationTexts = {"in", ">", ">=", "<", "<="};

std::string without_mark(const std::string& symbol) { return symbol.substr(1); }

bool is_extent(WildcardKind kind) { return kind == WildcardKind::dim || kind == WildcardKind::integer; }

bool takes(ParameterType type, WildcardKind kind) {
  switch (kind) {
    case WildcardKind::value:
      return false;
    case WildcardKind::integer:
    case WildcardKind::dim:
      return type == ParameterType::integer;
    case WildcardKind::real:
      return type == ParameterType::real;
    case WildcardKind::boolean:
      return type == ParameterType::boolean;
    case WildcardKind::string:
      return type == ParameterType::string;
    case WildcardKind::dtype:
      return type == ParameterType::dtype;
  }
  return false;
}

const Wildcard& declared(const Pattern& pattern, const std::string& symbol) {
  USER_CHECK(symbol.starts_with('?'), "[{}] {} is a symbol of one graph: a pattern needs a wildcard such as ?{}",
             pattern.name, symbol, symbol);
  const Wildcard* wildcard = pattern.find(without_mark(symbol));
  USER_CHECK(wildcard != nullptr, "[{}] the wildcard {} is not declared", pattern.name, symbol);
  return *wildcard;
}

void check_extent(const Pattern& pattern, const Dim& dim) {
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  for (const std::string& symbol : symbols) {
    const WildcardKind kind = declared(pattern, symbol).kind;
    USER_CHECK(is_extent(kind), "[{}] {} is a {} and cannot be in {}", pattern.name, symbol, wildcard_kind_text(kind),
               dim.text());
  }
}

// Converts the attributes of one call to the types of its parameters; see complete_attributes.
class Fitting {
 public:
  Fitting(const Pattern& pattern, const Op* op) : pattern_(pattern), op_(op) {}

  Attribute fit(const Attribute& value, const Parameter& parameter) const {
    if (const auto* list = std::get_if<AttributeList>(&value.storage())) {
      if (parameter.type == ParameterType::integer_list) return each(*list, parameter, ParameterType::integer);
      if (parameter.type == ParameterType::real_list) return each(*list, parameter, ParameterType::real);
    }
    if (is_symbolic(value)) {
      check(value.dim(), parameter);
      return value;
    }
    Attribute fitted = conform(value, parameter, op_->name);
    if (is_symbolic(fitted)) check(fitted.dim(), parameter);
    return fitted;
  }

  // For an op whose schema is not known.
  void check_wildcards(const Attribute& value) const {
    if (const auto* list = std::get_if<AttributeList>(&value.storage()))
      for (const Attribute& element : *list) check_wildcards(element);
    if (!is_symbolic(value)) return;
    const std::string lone = value.dim().symbol_name();
    if (lone.empty()) return check_extent(pattern_, value.dim());
    USER_CHECK(declared(pattern_, lone).kind != WildcardKind::value, "[{}] {} is a value, no attribute", pattern_.name,
               lone);
  }

 private:
  static bool is_symbolic(const Attribute& value) {
    const Dim* dim = std::get_if<Dim>(&value.storage());
    return dim != nullptr && !dim->is_number();
  }

  Attribute each(const AttributeList& list, const Parameter& parameter, ParameterType type) const {
    AttributeList fitted;
    for (const Attribute& element : list) fitted.push_back(fit(element, Parameter{parameter.name, type, false, {}}));
    return fitted;
  }

  void check(const Dim& dim, const Parameter& parameter) const {
    const std::string lone = dim.symbol_name();
    if (lone.empty()) check_extent(pattern_, dim);
    const WildcardKind kind = lone.empty() ? WildcardKind::dim : declared(pattern_, lone).kind;
    USER_CHECK(takes(parameter.type, kind), "[{}] {} cannot be {}, of kind {}; the signature is {}", op_->name,
               parameter.name, dim.text(), wildcard_kind_text(kind), op_->schema.text());
  }

  const Pattern& pattern_;
  const Op* op_;
};

void collect_lone_symbols(const Attribute& value, std::set<std::string>& into) {
  if (const auto* list = std::get_if<AttributeList>(&value.storage()))
    for (const Attribute& element : *list) collect_lone_symbols(element, into);
  if (const Dim* dim = std::get_if<Dim>(&value.storage()))
    if (const std::string symbol = dim->symbol_name(); !symbol.empty()) into.insert(without_mark(symbol));
}

// Names of the wildcards that are bound when `before` matches.
std::set<std::string> bound_by_before(const Pattern& pattern) {
  std::set<std::string> bound;
  auto read_off = [&](const std::optional<PatternType>& type) {
    if (!type) return;
    for (std::string& name : type->readable()) bound.insert(std::move(name));
  };
  for (const PatternNode& node : pattern.before.nodes) {
    for (const PatternOperand& operand : node.operands) {
      if (operand.wildcard < 0) continue;
      const Wildcard& wildcard = pattern.wildcards[static_cast<std::size_t>(operand.wildcard)];
      bound.insert(wildcard.name);
      read_off(wildcard.type);
    }
    for (const auto& [key, value] : node.attributes.entries()) collect_lone_symbols(value, bound);
    for (const PatternResult& result : node.results) read_off(result.type);
  }
  return bound;
}

std::optional<PatternBreach> unread_node(const PatternBody& body) {
  std::vector<bool> read(body.nodes.size());
  auto mark = [&](const PatternOperand& operand) {
    if (operand.node >= 0) read[static_cast<std::size_t>(operand.node)] = true;
  };
  for (const PatternOperand& result : body.results) mark(result);
  for (const PatternNode& node : body.nodes)
    for (const PatternOperand& operand : node.operands) mark(operand);
  for (std::size_t i = 0; i < body.nodes.size(); ++i)
    if (!read[i]) return PatternBreach{"nothing reads what " + body.nodes[i].name + " gives", -1, &body.nodes[i]};
  return std::nullopt;
}

ParameterType parameter_type(WildcardKind kind) {
  switch (kind) {
    case WildcardKind::real:
      return ParameterType::real;
    case WildcardKind::string:
      return ParameterType::string;
    case WildcardKind::dtype:
      return ParameterType::dtype;
    default:
      return ParameterType::integer;
  }
}

bool ascending(const Attribute& a, const Attribute& b) {
  const Dim *m = std::get_if<Dim>(&a.storage()), *n = std::get_if<Dim>(&b.storage());
  if (m != nullptr && n != nullptr) return m->number() < n->number();
  const double *x = std::get_if<double>(&a.storage()), *y = std::get_if<double>(&b.storage());
  if (x != nullptr && y != nullptr) return *x < *y;
  return a.text() < b.text();
}

}  // namespace

std::string_view wildcard_kind_text(WildcardKind kind) { return kKindTexts[static_cast<std::size_t>(kind)]; }

std::string_view relation_text(Relation relation) { return kRelationTexts[static_cast<std::size_t>(relation)]; }

std::string PatternType::text() const {
  if (kind == MetaKind::batch) return "batch";
  if (kind == MetaKind::kv) return open_shape ? "kv[...]" : Meta::pages(kv).text();
  std::string text = dtype_wildcard.empty() ? std::string(dtype_text(dtype)) : "?" + dtype_wildcard;
  text += open_shape ? "[..." : "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 || open_shape ? ", " : "") + shape[i].text();
  text += "]";
  if (strides) {
    const std::string inside = shape_text(*strides);
    text += "{" + inside.substr(1, inside.size() - 2) + "}";
  }
  return packed.empty() ? text : text + " packed=" + packed;
}

PatternType PatternType::renamed(const std::map<std::string, std::string>& names) const {
  std::map<std::string, Dim> symbols;
  for (const auto& [from, to] : names) symbols.emplace("?" + from, Dim::symbol("?" + to));
  PatternType type = *this;
  if (const auto found = names.find(dtype_wildcard); found != names.end()) type.dtype_wildcard = found->second;
  for (Dim& dim : type.shape) dim = dim.substitute(symbols);
  if (type.strides)
    for (Dim& stride : *type.strides) stride = stride.substitute(symbols);
  return type;
}

std::vector<std::string> PatternType::readable() const {
  std::vector<std::string> names;
  if (!dtype_wildcard.empty()) names.push_back(dtype_wildcard);
  auto read = [&](const Shape& dims) {
    for (const Dim& dim : dims)
      if (const std::string symbol = dim.symbol_name(); symbol.starts_with('?')) names.push_back(without_mark(symbol));
  };
  read(shape);
  if (strides) read(*strides);
  return names;
}

const Wildcard* Pattern::find(std::string_view wildcard) const {
  const int index = index_of(wildcard);
  return index < 0 ? nullptr : &wildcards[static_cast<std::size_t>(index)];
}

int Pattern::index_of(std::string_view wildcard) const {
  for (std::size_t i = 0; i < wildcards.size(); ++i)
    if (wildcards[i].name == wildcard) return static_cast<int>(i);
  return -1;
}

std::set<std::string> Pattern::declared_by_types() const {
  std::set<std::string> names;
  for (const Wildcard& wildcard : wildcards)
    if (wildcard.type)
      for (const std::string& name : wildcard.type->readable())
        if (const Wildcard* read = find(name); read != nullptr && read->kind != WildcardKind::integer)
          names.insert(name);
  return names;
}

void add_wildcard(Pattern& pattern, std::string name, WildcardKind kind) {
  USER_CHECK(is_symbol_name("?" + name), "[{}] a wildcard is named by letters, digits and _, but is ?{}", pattern.name,
             name);
  USER_CHECK(pattern.find(name) == nullptr, "[{}] the wildcard ?{} is declared twice{}", pattern.name, name,
             pattern.declared_by_types().contains(name) ? ": the type of a value declares it already" : "");
  USER_CHECK(pattern.wildcards.size() < kMaxWildcards, "[{}] a pattern has at most {} wildcards", pattern.name,
             kMaxWildcards);
  pattern.wildcards.push_back({.name = std::move(name), .kind = kind});
}

void add_value_wildcard(Pattern& pattern, std::string name, std::optional<PatternType> type) {
  add_wildcard(pattern, std::move(name), WildcardKind::value);
  if (!type) return;
  const std::size_t value = pattern.wildcards.size() - 1;
  const std::set<std::string> by_types = pattern.declared_by_types();
  for (const std::string& read : type->readable()) {
    const bool is_dtype = read == type->dtype_wildcard;
    const Wildcard* known = pattern.find(read);
    if (known == nullptr) {
      add_wildcard(pattern, read, is_dtype ? WildcardKind::dtype : WildcardKind::dim);
      continue;
    }
    const bool is_added = static_cast<std::size_t>(known - pattern.wildcards.data()) > value;
    USER_CHECK(known->kind == WildcardKind::integer || known->kind == WildcardKind::value || is_added ||
                   by_types.contains(read),
               "[{}] ?{} is in the type of ?{} and so needs no declaration", pattern.name, read,
               pattern.wildcards[value].name);
  }
  pattern.wildcards[value].type = std::move(type);
}

void add_condition(Pattern& pattern, const std::string& name, Relation relation, std::vector<Attribute> operands) {
  const int index = pattern.index_of(name);
  USER_CHECK(index >= 0, "[{}] the wildcard ?{} is not declared", pattern.name, name);
  Wildcard& wildcard = pattern.wildcards[static_cast<std::size_t>(index)];
  const bool is_number = is_extent(wildcard.kind) || wildcard.kind == WildcardKind::real;
  const bool has_set = is_number || wildcard.kind == WildcardKind::string || wildcard.kind == WildcardKind::dtype;
  USER_CHECK(relation == Relation::one_of ? has_set : is_number, "[{}] ?{} is a {}, which takes no condition '{}'",
             pattern.name, name, wildcard_kind_text(wildcard.kind), relation_text(relation));
  USER_CHECK(!operands.empty() && operands.size() <= kMaxConditionValues,
             "[{}] a condition of ?{} names 1 to {} values, but got {}", pattern.name, name, kMaxConditionValues,
             operands.size());
  const Parameter parameter{"a condition of ?" + name, parameter_type(wildcard.kind), false, {}};
  for (Attribute& operand : operands) {
    operand = conform(operand, parameter, pattern.name);
    const Dim* dim = std::get_if<Dim>(&operand.storage());
    USER_CHECK(dim == nullptr || dim->is_number(), "[{}] {} must be a number, but is {}", pattern.name, parameter.name,
               operand.text());
    const double* real = std::get_if<double>(&operand.storage());
    USER_CHECK(real == nullptr || !std::isnan(*real), "[{}] {} cannot be nan", pattern.name, parameter.name);
  }
  std::sort(operands.begin(), operands.end(), ascending);
  const auto same = std::adjacent_find(operands.begin(), operands.end(),
                                       [](const Attribute& a, const Attribute& b) { return !ascending(a, b); });
  USER_CHECK(same == operands.end(), "[{}] {} names {} twice", pattern.name, parameter.name, same->text());
  const auto place = std::find_if(wildcard.conditions.begin(), wildcard.conditions.end(),
                                  [&](const Condition& condition) { return condition.relation >= relation; });
  USER_CHECK(place == wildcard.conditions.end() || place->relation != relation,
             "[{}] the condition '{}' of ?{} is given twice", pattern.name, relation_text(relation), name);
  wildcard.conditions.insert(place, {relation, std::move(operands)});
}

void check_type(const Pattern& pattern, const PatternType& type) {
  if (!type.dtype_wildcard.empty()) {
    const WildcardKind kind = declared(pattern, "?" + type.dtype_wildcard).kind;
    USER_CHECK(kind == WildcardKind::dtype, "[{}] ?{} is a {} and cannot be a dtype", pattern.name, type.dtype_wildcard,
               wildcard_kind_text(kind));
  }
  for (const Dim& dim : type.shape) check_extent(pattern, dim);
  if (!type.strides) return;
  for (const Dim& stride : *type.strides) check_extent(pattern, stride);
}

Attributes complete_attributes(const Pattern& pattern, const Op* op, const NamedAttributes& given) {
  const Fitting fitting(pattern, op);
  Attributes complete;
  if (op == nullptr) {
    for (const auto& [key, value] : given) {
      fitting.check_wildcards(value);
      complete.set(key, value);
    }
    return complete;
  }
  const Schema& schema = op->schema;
  for (std::size_t i = schema.tensor_count(); i < schema.parameters.size(); ++i) {
    const Parameter& parameter = schema.parameters[i];
    const auto found =
        std::find_if(given.begin(), given.end(), [&](const auto& entry) { return entry.first == parameter.name; });
    USER_CHECK(found != given.end() || parameter.default_value.has_value(),
               "[{}] attribute {} must be given; the signature is {}", op->name, parameter.name, schema.text());
    complete.set(parameter.name,
                 found == given.end() ? *parameter.default_value : fitting.fit(found->second, parameter));
  }
  for (const auto& [key, value] : given)
    USER_CHECK(schema.parameter_index(key) >= static_cast<int>(schema.tensor_count()),
               "[{}] has no attribute {}; its signature is {}", op->name, key, schema.text());
  return complete;
}

std::optional<PatternBreach> broken_rule(const Pattern& pattern) {
  const std::set<std::string> bound = bound_by_before(pattern);
  for (std::size_t i = 0; i < pattern.wildcards.size(); ++i)
    if (!bound.contains(pattern.wildcards[i].name))
      return PatternBreach{"before does not bind ?" + pattern.wildcards[i].name, static_cast<int>(i)};
  if (pattern.before.results.empty()) return PatternBreach{"before returns nothing"};
  for (auto it = pattern.before.results.begin(); it != pattern.before.results.end(); ++it) {
    if (it->node < 0) return PatternBreach{"before returns a wildcard, which the match would not replace"};
    if (std::find(pattern.before.results.begin(), it, *it) != it)
      return PatternBreach{"before returns one value twice"};
  }
  if (pattern.before.results.size() != pattern.after.results.size())
    return PatternBreach{fmt::format("before returns {} values, but after {}", pattern.before.results.size(),
                                     pattern.after.results.size())};
  if (auto breach = unread_node(pattern.before)) return breach;
  return unread_node(pattern.after);
}

std::optional<std::string> find_breach(const Pattern& pattern) {
  if (const auto breach = broken_rule(pattern)) return breach->message;
  for (const PatternBody* body : {&pattern.before, &pattern.after})
    for (const PatternNode& node : body->nodes)
      if (node.op == nullptr)
        return (node.line > 0 ? fmt::format("line {}: ", node.line) : "") +
               fmt::format("[{}] is not an op of this program", node.name);
  return std::nullopt;
}

bool structurally_equal(const Pattern& a, const Pattern& b) { return canonical(a) == canonical(b); }

ContentHash structural_hash(const Pattern& pattern) { return hash_bytes(canonical(pattern)); }

}  // namespace weft
