#pragma once

// A pattern: two small pieces of graph over shared wildcards. Where `before` matches, `after` may replace it.
//
//   pattern fused_add_rms_norm(?x: ?T[?n, ?d], ?residual: ?T[?n, ?d], ?weight: ?T[?d], ?epsilon: float)
//       where ?epsilon > 0.0 {
//     before {
//       %sum = add(?x, ?residual)
//       %y = rms_norm(%sum, ?weight, epsilon=?epsilon)
//       return %y, %sum
//     }
//     after { ... }
//   }
//
// The bodies are not Graphs: the types of their values are unknown until a match binds the wildcards; then they are
// inferred from the ops, as in any graph. A PatternType holds what the pattern requires of a type. A pattern can also
// be written as two functions over Values (ir/pattern_definition.h), which gives the same data.
//
// Each use of a wildcard for a number, a dtype or a dim is the symbol `?name`: an Attribute, or a dim of a type, holds
// Dim::symbol("?name"). A dim or an integer may also hold it inside an expression.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/content_hash.h"
#include "ir/op.h"

namespace weft {

inline constexpr std::size_t kMaxWildcards = 128;
inline constexpr std::size_t kMaxPatternNodes = 256;     // in one body
inline constexpr std::size_t kMaxPatternOperands = 256;  // of one node
inline constexpr std::size_t kMaxConditionValues = 64;   // of one `in {...}`

// The first is a value of the graph; the next four are what attributes hold.
enum class WildcardKind : std::uint8_t { value, integer, real, boolean, string, dtype, dim };
// The kind as the header of a pattern writes it, e.g. float or dim; "value" for a value.
std::string_view wildcard_kind_text(WildcardKind kind);

// What a pattern requires of a value's type. Anything that is not stated matches.
struct PatternType {
  MetaKind kind = MetaKind::tensor;   // tensor, kv or batch
  DType dtype = DType::f32;           // for kind tensor, when dtype_wildcard is ""
  std::string dtype_wildcard = {};    // without `?`; "" when the dtype is stated
  bool open_shape = false;            // `[..., ?d]`: any dims may precede `shape`; `kv[...]`: any pages
  Shape shape = {};                   // its dims may hold wildcards, and so may `strides`
  std::optional<Shape> strides = {};  // any layout when not stated; never with an open shape
  std::string packed = {};            // "" matches packed and plain tensors
  KvLayout kv = {};                   // for kind kv

  std::string text() const;
  // A copy with each wildcard of the map renamed; names are without `?`.
  PatternType renamed(const std::map<std::string, std::string>& names) const;
  // The wildcards that are the whole dtype, dim or stride, so that a match can bind them from it. In order, without
  // `?`.
  std::vector<std::string> readable() const;
  bool operator==(const PatternType&) const = default;
};

enum class Relation : std::uint8_t { one_of, above, at_least, below, at_most };
std::string_view relation_text(Relation relation);  // in > >= < <=

struct Condition {
  Relation relation = Relation::one_of;
  std::vector<Attribute> operands;  // ascending; exactly one unless the relation is one_of
  bool operator==(const Condition&) const = default;
};

struct Wildcard {
  std::string name;  // without `?`
  WildcardKind kind = WildcardKind::value;
  std::optional<PatternType> type = {};    // for kind value; any type when not stated
  std::vector<Condition> conditions = {};  // ordered by relation, at most one of each
};

// An operand of a node, or a result of a body: nothing, a wildcard, or a result of an earlier node.
struct PatternOperand {
  int wildcard = -1;  // index in Pattern::wildcards
  int node = -1;      // index in PatternBody::nodes, when it is not a wildcard
  int result = 0;     // index of that node's result
  bool present() const { return wildcard >= 0 || node >= 0; }
  bool operator==(const PatternOperand&) const = default;
};

struct PatternResult {
  std::string name;  // without `%`; "" until printing assigns a name
  std::optional<PatternType> type = {};
};

struct PatternNode {
  std::string name;                           // the op's name
  const Op* op = nullptr;                     // null for an op that this process does not know
  std::vector<PatternOperand> operands = {};  // schema order
  Attributes attributes = {};                 // complete and in schema order when `op` is known
  std::vector<PatternResult> results = {};
  int line = 0;  // in the text it was parsed from; 0 when not parsed
};

struct PatternBody {
  std::vector<PatternNode> nodes = {};  // each node is after the nodes whose results it uses
  std::vector<PatternOperand> results = {};
};

struct Pattern {
  std::string name;
  std::vector<Wildcard> wildcards = {};  // a dim or dtype that a value's type declares is after that value
  PatternBody before = {};
  PatternBody after = {};

  const Wildcard* find(std::string_view wildcard) const;  // name without `?`; null when there is none
  int index_of(std::string_view wildcard) const;          // -1 when there is none
  // The dims and dtypes that need no declaration, because the type of a value binds them.
  std::set<std::string> declared_by_types() const;
};

// These add to `pattern`; the parser and PatternDefinition both use them. UserError when the addition is not allowed. A
// value's type declares each wildcard that is a whole dim or dtype of it.
void add_wildcard(Pattern& pattern, std::string name, WildcardKind kind);
void add_value_wildcard(Pattern& pattern, std::string name, std::optional<PatternType> type);
void add_condition(Pattern& pattern, const std::string& wildcard, Relation relation, std::vector<Attribute> operands);
// UserError when a symbol of the type is not a wildcard of kind dim or integer, or its dtype wildcard is not of kind
// dtype.
void check_type(const Pattern& pattern, const PatternType& type);
// As complete_attributes in op.h, but a wildcard may replace a value of its kind. With a null `op`, only the wildcards
// are checked and the attributes are kept as given.
Attributes complete_attributes(const Pattern& pattern, const Op* op, const NamedAttributes& given);

struct PatternBreach {
  std::string message;
  int wildcard = -1;                  // the wildcard that broke the rule, or
  const PatternNode* node = nullptr;  // the node that broke it; there may be neither
};

// The first rule that the finished pattern breaks: `before` binds each wildcard; it returns one or more results of its
// own nodes, each once; `after` returns the same number of results; each node of both has a result that is used or
// returned.
std::optional<PatternBreach> broken_rule(const Pattern& pattern);

// As find_breach in verify.h: reports what broken_rule finds, or an op that the program does not know.
std::optional<std::string> find_breach(const Pattern& pattern);

// As for graphs in print.h: display keeps names; canonical replaces the names of wildcards and values by numbers, in
// order. Patterns are equal when their canonical texts are equal.
std::string display(const Pattern& pattern);
std::string canonical(const Pattern& pattern);
bool structurally_equal(const Pattern& a, const Pattern& b);
ContentHash structural_hash(const Pattern& pattern);

}  // namespace weft
