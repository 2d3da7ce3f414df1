#pragma once

// A pattern: two small pieces of graph over shared wildcards. Where `before` matches, `after` may stand instead.
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
// The bodies are no Graphs: the types of their values are not known before a match binds the wildcards, and then they
// follow from the ops, as in any graph. What a pattern does say of a type is a PatternType. Two functions over Values,
// run on wildcards, give this same data.
//
// A wildcard that stands for a number, a dtype or a dim is, wherever it is used, the symbol `?name`: an Attribute or a
// dim of a type holds Dim::symbol("?name"), alone or (dims and integers) inside an expression.

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
// As the header of a pattern declares it: float, dim; "value" for a value.
std::string_view wildcard_kind_text(WildcardKind kind);

// What is said of a value's type; what is not said does not matter.
struct PatternType {
  MetaKind kind = MetaKind::tensor;   // tensor, kv or batch
  DType dtype = DType::f32;           // kind tensor, when no wildcard stands for it
  std::string dtype_wildcard = {};    // without `?`; "" when the dtype is stated
  bool open_shape = false;            // `[..., ?d]`: any dims may stand before `shape`; `kv[...]`: any pages
  Shape shape = {};                   // its dims, and those of `strides`, may hold wildcards
  std::optional<Shape> strides = {};  // any layout when not stated; never with an open shape
  std::string packed = {};            // "": packed or plain
  KvLayout kv = {};                   // kind kv

  std::string text() const;
  // With each wildcard of the map renamed; names without `?`.
  PatternType renamed(const std::map<std::string, std::string>& names) const;
  // Wildcards that stand alone as the dtype, a dim or a stride: a match reads them off there. In order, without `?`.
  std::vector<std::string> readable() const;
  bool operator==(const PatternType&) const = default;
};

enum class Relation : std::uint8_t { one_of, above, at_least, below, at_most };
std::string_view relation_text(Relation relation);  // in > >= < <=

struct Condition {
  Relation relation = Relation::one_of;
  std::vector<Attribute> operands;  // ascending; one for all relations but one_of
  bool operator==(const Condition&) const = default;
};

struct Wildcard {
  std::string name;  // without `?`
  WildcardKind kind = WildcardKind::value;
  std::optional<PatternType> type = {};    // kind value; any type when not stated
  std::vector<Condition> conditions = {};  // ordered by relation, at most one of each
};

// What a node takes or a body returns: nothing, a wildcard, or a result of a node above.
struct PatternOperand {
  int wildcard = -1;  // index in Pattern::wildcards
  int node = -1;      // index in PatternBody::nodes, when no wildcard
  int result = 0;     // which result of that node
  bool present() const { return wildcard >= 0 || node >= 0; }
  bool operator==(const PatternOperand&) const = default;
};

struct PatternResult {
  std::string name;  // without `%`; "" until printing gives one
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
  std::vector<PatternNode> nodes = {};  // operands stand before their use
  std::vector<PatternOperand> results = {};
};

struct Pattern {
  std::string name;
  std::vector<Wildcard> wildcards = {};  // a dim or dtype that a type declares stands behind the value with that type
  PatternBody before = {};
  PatternBody after = {};

  const Wildcard* find(std::string_view wildcard) const;  // name without `?`; null when there is none
  int index_of(std::string_view wildcard) const;          // -1 when there is none
  // Dims and dtypes that need no declaration: they can be read off the type of a value.
  std::set<std::string> declared_by_types() const;
};

// Each adds to `pattern` what text and code say alike; UserError when it cannot be said. A value's type declares the
// dims and dtypes that stand alone in it.
void add_wildcard(Pattern& pattern, std::string name, WildcardKind kind);
void add_value_wildcard(Pattern& pattern, std::string name, std::optional<PatternType> type);
void add_condition(Pattern& pattern, const std::string& wildcard, Relation relation, std::vector<Attribute> operands);
// UserError when a symbol of the type is no wildcard of kind dim or integer, or its dtype none of kind dtype.
void check_type(const Pattern& pattern, const PatternType& type);
// What complete_attributes in op.h is for graphs: wildcards may stand for values of their kind. With `op` null
// attributes are kept as given, their wildcards checked.
Attributes complete_attributes(const Pattern& pattern, const Op* op, const NamedAttributes& given);

struct PatternBreach {
  std::string message;
  int wildcard = -1;                  // the one it is about, or
  const PatternNode* node = nullptr;  // the node, or neither
};

// The first rule that the finished pattern breaks: `before` binds every wildcard; it returns results of its own nodes,
// each once, and at least one; `after` returns as many; no node of either goes unread.
std::optional<PatternBreach> broken_rule(const Pattern& pattern);

// As find_breach in verify.h: broken_rule, or an op that the program does not know.
std::optional<std::string> find_breach(const Pattern& pattern);

// As for graphs in print.h: display keeps names, canonical numbers wildcards and values in order; patterns are equal
// when their canonical texts are.
std::string display(const Pattern& pattern);
std::string canonical(const Pattern& pattern);
bool structurally_equal(const Pattern& a, const Pattern& b);
ContentHash structural_hash(const Pattern& pattern);

}  // namespace weft
