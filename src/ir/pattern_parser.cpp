#include "ir/pattern_parser.h"

#include <array>

#include "base/error.h"
#include "ir/parse_call.h"
#include "tensor/attribute_parser.h"
#include "tensor/dim_parser.h"
#include "tensor/meta_parser.h"

namespace weft {
namespace {

// Kinds that the pattern's header declares by a word. Values are declared by a type instead.
constexpr std::array kDeclaredKinds = {WildcardKind::integer, WildcardKind::real,  WildcardKind::boolean,
                                       WildcardKind::string,  WildcardKind::dtype, WildcardKind::dim};
// Longer spellings come first, as the parser takes the first that fits.
constexpr std::array kComparisons = {Relation::at_least, Relation::at_most, Relation::above, Relation::below};

class PatternParser {
 public:
  PatternParser(GraphCursor& cursor, const OpTable& ops) : cursor_(cursor), ops_(ops) {}

  std::shared_ptr<Pattern> parse() {
    pattern_->name = cursor_.word("the name of the pattern");
    wildcards();
    if (cursor_.take_word("where", true)) conditions();
    cursor_.expect("{", true);
    body("before", pattern_->before);
    body("after", pattern_->after);
    cursor_.expect("}", true);
    check_rules();
    return std::move(pattern_);
  }

 private:
  void wildcards() {
    cursor_.expect("(");
    if (!cursor_.take(")", true)) {
      do declaration();
      while (cursor_.take(",", true));
      cursor_.expect(")", true);
    }
    for (std::size_t i = 0; i < pattern_->wildcards.size(); ++i) {
      if (!pattern_->wildcards[i].type) continue;
      const std::size_t end = std::exchange(cursor_.position(), places_[i]);
      located(cursor_, [&] { check_type(*pattern_, *pattern_->wildcards[i].type); });
      cursor_.position() = end;
    }
  }

  void declaration() {
    cursor_.skip(true);
    const std::size_t place = cursor_.position();
    std::string name = wildcard_name();
    std::optional<PatternType> stated;
    WildcardKind kind = WildcardKind::value;
    if (cursor_.take(":")) {
      kind = declared_kind();
      if (kind == WildcardKind::value) stated = type();
    }
    located(cursor_, [&] {
      if (kind == WildcardKind::value) {
        add_value_wildcard(*pattern_, std::move(name), std::move(stated));
      } else {
        add_wildcard(*pattern_, std::move(name), kind);
      }
    });
    places_.resize(pattern_->wildcards.size(), place);
  }

  // Returns `value` when the text here is a type. `bool` alone is a flag, `bool[` begins a type.
  WildcardKind declared_kind() {
    cursor_.skip(true);
    const std::string word = cursor_.peek_word();
    for (const WildcardKind kind : kDeclaredKinds) {
      if (wildcard_kind_text(kind) != word || cursor_.peek(word.size()) == '[') continue;
      cursor_.position() += word.size();
      return kind;
    }
    return WildcardKind::value;
  }

  void conditions() {
    do {
      cursor_.skip(true);
      const std::string name = wildcard_name();
      std::vector<Attribute> operands;
      const Relation relation = this->relation();
      if (relation == Relation::one_of) {
        cursor_.expect("{");
        do {
          if (operands.size() == kMaxConditionValues)
            cursor_.fail_expected(fmt::format("at most {} values", kMaxConditionValues));
          operands.push_back(condition_value());
        } while (cursor_.take(",", true));
        cursor_.expect("}", true);
      } else {
        operands.push_back(condition_value());
      }
      located(cursor_, [&] { add_condition(*pattern_, name, relation, std::move(operands)); });
    } while (cursor_.take(",", true));
  }

  Relation relation() {
    if (cursor_.take_word("in")) return Relation::one_of;
    for (const Relation relation : kComparisons)
      if (cursor_.take(relation_text(relation))) return relation;
    cursor_.fail_expected("'in', '>', '>=', '<' or '<='");
  }

  Attribute condition_value() {
    cursor_.skip(true);
    return parse_attribute(cursor_.text(), cursor_.position(), &no_symbols_);
  }

  void body(const char* keyword, PatternBody& into) {
    locals_.clear();
    cursor_.skip(true);
    cursor_.expect(keyword);
    cursor_.expect("{");
    for (cursor_.skip(true); !cursor_.take_word("return"); cursor_.skip(true)) {
      if (into.nodes.size() == kMaxPatternNodes)
        cursor_.fail(fmt::format("a body of a pattern has at most {} nodes", kMaxPatternNodes));
      node_places_.push_back(cursor_.position());
      node(into);
    }
    cursor_.skip(false);
    while (cursor_.peek() == '%' || cursor_.peek() == '?') {
      if (into.results.size() == kMaxPatternOperands)
        cursor_.fail(fmt::format("a body returns at most {} values", kMaxPatternOperands));
      into.results.push_back(operand());
      if (!cursor_.take(",")) break;
      cursor_.skip(true);
    }
    cursor_.expect("}", true);
  }

  void node(PatternBody& body) {
    PatternNode node;
    node.line = cursor_.line();
    if (cursor_.peek() != '%') cursor_.fail_expected("a result such as %x, or 'return'");
    do {
      if (node.results.size() == kMaxPatternOperands)
        cursor_.fail(fmt::format("a node has at most {} results", kMaxPatternOperands));
      node.results.push_back({.name = parse_value_name(cursor_)});
      if (!cursor_.take(":")) continue;
      node.results.back().type = type();
      located(cursor_, [&] { check_type(*pattern_, *node.results.back().type); });
    } while (cursor_.take(",", true));
    cursor_.expect("=");
    node.name = cursor_.word("an op");
    node.op = ops_.find(node.name);
    if (cursor_.peek() == '.' || cursor_.peek() == '@')
      cursor_.fail(
          "an op of a pattern is a plain name: patterns match before providers are chosen, where every op makes "
          "new values");
    arguments(node);
    expect_end_of_node(cursor_);
    if (node.op != nullptr && node.op->schema.results.size() != node.results.size())
      cursor_.fail(fmt::format("[{}] gives {} results, but {} are named", node.name, node.op->schema.results.size(),
                               node.results.size()));
    const int index = static_cast<int>(body.nodes.size());
    for (std::size_t i = 0; i < node.results.size(); ++i)
      if (!locals_.emplace(node.results[i].name, PatternOperand{.node = index, .result = static_cast<int>(i)}).second)
        cursor_.fail("%" + node.results[i].name + " is defined twice");
    body.nodes.push_back(std::move(node));
  }

  void arguments(PatternNode& node) {
    NamedAttributes given;
    cursor_.expect("(");
    bool more = !cursor_.take(")", true);
    while (more) {
      cursor_.skip(true);
      const bool is_value = cursor_.peek() == '%' || cursor_.peek() == '?';
      if (is_value || (cursor_.peek_word() == "none" && given.empty())) {
        if (!given.empty()) cursor_.fail("values must be before attributes");
        if (node.operands.size() == kMaxPatternOperands)
          cursor_.fail(fmt::format("a node takes at most {} values", kMaxPatternOperands));
        node.operands.push_back(is_value ? operand() : PatternOperand());
        if (!is_value) cursor_.position() += 4;
      } else {
        const std::string key = cursor_.word("a value, 'none' or an attribute");
        cursor_.expect("=");
        check_attribute_name(cursor_, node.op, node.name, key, given);
        given.emplace_back(key, parse_attribute(cursor_.text(), cursor_.position(), &no_symbols_));
      }
      more = cursor_.take(",", true);
      if (!more) cursor_.expect(")", true);
    }
    if (node.op != nullptr) complete_operands(cursor_, *node.op, node.operands, PatternOperand());
    located(cursor_, [&] { node.attributes = complete_attributes(*pattern_, node.op, given); });
  }

  PatternOperand operand() {
    if (cursor_.peek() == '?') {
      const std::string name = wildcard_name();
      const int index = pattern_->index_of(name);
      if (index < 0) cursor_.fail("the wildcard ?" + name + " is not declared");
      const WildcardKind kind = pattern_->wildcards[static_cast<std::size_t>(index)].kind;
      if (kind != WildcardKind::value)
        cursor_.fail(fmt::format("?{} is a {}, no value", name, wildcard_kind_text(kind)));
      return {.wildcard = index};
    }
    const std::string name = parse_value_name(cursor_);
    const auto found = locals_.find(name);
    if (found == locals_.end()) cursor_.fail("%" + name + " is used before it is defined in this body");
    return found->second;
  }

  std::string wildcard_name() {
    if (cursor_.peek() != '?') cursor_.fail_expected("a wildcard such as ?x");
    ++cursor_.position();
    std::string name = cursor_.peek_word();
    if (name.empty()) cursor_.fail_expected("a name after '?'");
    cursor_.position() += name.size();
    return name;
  }

  PatternType type() {
    cursor_.skip(true);
    PatternType type;
    const std::string word = cursor_.peek_word();
    if (word == "batch" || word == "kv") return opaque_type(word);
    if (cursor_.peek() == '?') {
      type.dtype_wildcard = wildcard_name();
    } else {
      const std::optional<DType> dtype = dtype_from_text(word);
      if (!dtype) cursor_.fail_expected("a type such as f32[?n, 64], or a kind of wildcard such as float");
      type.dtype = *dtype;
      cursor_.position() += word.size();
    }
    cursor_.expect("[");
    type.open_shape = cursor_.take("...", true);
    if (!type.open_shape || cursor_.take(",", true)) type.shape = dims(type.open_shape);
    cursor_.expect("]", true);
    if (!type.open_shape && cursor_.peek() == '{') type.strides = strides();
    if (cursor_.take_word("packed")) {
      cursor_.expect("=");
      type.packed = cursor_.word("the name of a packing");
    }
    located(cursor_, [&] { check_shape(type); });
    return type;
  }

  PatternType opaque_type(const std::string& word) {
    PatternType type{.kind = word == "kv" ? MetaKind::kv : MetaKind::batch};
    cursor_.position() += word.size();
    if (type.kind == MetaKind::batch) return type;
    if (cursor_.peek() == '[' && cursor_.peek(1) == '.') {
      cursor_.expect("[...]");
      type.open_shape = true;
      return type;
    }
    cursor_.position() -= word.size();
    type.kv = parse_meta(cursor_.text(), cursor_.position()).kv;
    return type;
  }

  // Parses up to the `]`, which is not consumed.
  Shape dims(bool at_least_one) {
    Shape shape;
    cursor_.skip(true);
    if (cursor_.peek() == ']' && !at_least_one) return shape;
    do {
      cursor_.skip(true);
      if (shape.size() == kMaxRank) cursor_.fail_expected(fmt::format("at most {} dims", kMaxRank));
      shape.push_back(parse_dim(cursor_.text(), cursor_.position()));
    } while (cursor_.take(",", true));
    return shape;
  }

  Shape strides() { return parse_shape(cursor_.text(), cursor_.position(), '{', '}', kMaxRank); }

  // Meta refuses shapes that a stated dtype cannot have. A wildcard dtype is checked as f32, so only shapes that are
  // illegal for each dtype are refused.
  static void check_shape(const PatternType& type) {
    const DType dtype = type.dtype_wildcard.empty() ? type.dtype : DType::f32;
    Meta::tensor(dtype, type.shape);
    if (!type.strides) return;
    USER_CHECK(!is_block(dtype), "[{}] is stored row-major in blocks and takes no strides", dtype_text(dtype));
    Meta::strided(DType::f32, type.shape, *type.strides);
  }

  void check_rules() {
    const auto breach = broken_rule(*pattern_);
    if (!breach) return;
    if (breach->wildcard >= 0) {
      cursor_.position() = places_[static_cast<std::size_t>(breach->wildcard)];
    } else if (breach->node != nullptr) {
      const std::size_t before = pattern_->before.nodes.size();
      std::size_t index = 0;
      while (index < before && breach->node != &pattern_->before.nodes[index]) ++index;
      if (index == before) index += static_cast<std::size_t>(breach->node - pattern_->after.nodes.data());
      cursor_.position() = node_places_[index];
    }
    cursor_.fail(fmt::format("[{}] {}", pattern_->name, breach->message));
  }

  GraphCursor& cursor_;
  const OpTable& ops_;
  std::shared_ptr<Pattern> pattern_ = std::make_shared<Pattern>();
  std::map<std::string, PatternOperand> locals_;  // of the body being read
  std::vector<std::size_t> places_;               // text position of each wildcard's declaration
  std::vector<std::size_t> node_places_;          // text positions of the nodes of `before`, then of `after`
  const std::set<std::string> no_symbols_;        // empty: symbols have a `?`, other words in attributes are enum words
};

}  // namespace

std::shared_ptr<Pattern> parse_pattern(GraphCursor& cursor, const OpTable& ops) {
  return PatternParser(cursor, ops).parse();
}

}  // namespace weft
