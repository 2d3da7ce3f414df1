#include "grammar/grammar.h"

#include <algorithm>

namespace weft::grammar {
namespace {

Expression make_node(ExpressionNode node) { return std::make_shared<const ExpressionNode>(std::move(node)); }

}  // namespace

Expression text_of(std::string bytes) { return make_node({.kind = ExpressionKind::text, .text = std::move(bytes)}); }
Expression one_of(Characters set) { return make_node({.kind = ExpressionKind::characters, .set = std::move(set)}); }
Expression sequence_of(std::vector<Expression> parts) {
  return make_node({.kind = ExpressionKind::sequence, .parts = std::move(parts)});
}
Expression choice_of(std::vector<Expression> parts) {
  return make_node({.kind = ExpressionKind::choice, .parts = std::move(parts)});
}
Expression repeat_of(Expression part, int least, int most) {
  return make_node({.kind = ExpressionKind::repeat, .parts = {std::move(part)}, .least = least, .most = most});
}
Expression optional_of(Expression part) { return repeat_of(std::move(part), 0, 1); }
Expression separated(const Expression& item, const Expression& separator, int least, int most) {
  const int others = most == kUnbounded ? kUnbounded : most - 1;
  return sequence_of({item, repeat_of(sequence_of({separator, item}), std::max(0, least - 1), others)});
}
Expression call_of(int rule) { return make_node({.kind = ExpressionKind::call, .rule = rule}); }
Expression jump_to(int rule) { return make_node({.kind = ExpressionKind::jump, .rule = rule}); }
Expression both_of(Expression a, Expression b) {
  return make_node({.kind = ExpressionKind::both, .parts = {std::move(a), std::move(b)}});
}
Expression without_of(Expression a, Expression b) {
  return make_node({.kind = ExpressionKind::without, .parts = {std::move(a), std::move(b)}});
}

Expression counted_of(Expression part, Expression beginnings, int least, int most) {
  return make_node({.kind = ExpressionKind::counted,
                    .parts = {std::move(part), std::move(beginnings)},
                    .least = least,
                    .most = most});
}

}  // namespace weft::grammar
