// Calls of ops that cannot be made.

#include "ir/op.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/meta_evaluator.h"

namespace weft::op_test {

std::string refusal_of(const Values& operands, Evaluator* home = nullptr) {
  try {
    call("add", operands, {}, false, home);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OpCall, AnEmptyValueIsTheUsersError) {
  const OpTable ops = make_op_table();
  MetaEvaluator home(ops);
  const Value x = Value::of_meta(home, Meta::tensor(DType::f32, {2, 3}));
  EXPECT_EQ(refusal_of({Value(), Value()}), "[add] must be called with a tensor, but was given only empty Values");
  EXPECT_NE(refusal_of({x, Value()}).find("must be given"), std::string::npos) << refusal_of({x, Value()});
  EXPECT_NE(refusal_of({Value(), Value()}, &home).find("must be given"), std::string::npos);
  EXPECT_EQ(refusal_of({x, x}), "accepted");
}

TEST(OpCall, WithoutOperandsItNeedsAnEvaluator) { EXPECT_THROW(call("empty", {}, {}), InternalError); }

}  // namespace weft::op_test
