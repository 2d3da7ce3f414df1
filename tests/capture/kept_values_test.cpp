// Values that a function stores in one run and uses in a later one, after a graph break: they are refused with name and
// line.

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "capture/run_eagerly.h"
#include "ir/reading.h"
#include "ops/add.h"
#include "ops/mul_scalar.h"
#include "ops/silu.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::kept_values_test {

// A function whose code runs in every call, and its use of a value that an earlier call stored.
struct Keeper {
  using Use = std::function<Value(Value y, Value kept)>;
  Value kept;
  Use use;       // null: to keep
  int line = 0;  // of the op that made the kept value

  Value operator()(Value x) {
    line = __LINE__ + 1;
    const Value y = silu(x);
    item(sum(sum(y, 0), 1));
    if (use) return use(y, kept);
    kept = y;
    return y;
  }
};

TEST(KeptValues, OfAnEarlierRunAreRefused) {
  Eager eager;
  const std::vector<std::pair<std::string, Keeper::Use>> uses{
      {"add", [](Value y, Value kept) { return add(y, kept); }},
      {"add", [](Value y, Value kept) { return add(kept, y); }},
      {"silu", [](Value, Value kept) { return silu(kept); }},
      {"add", [](Value, Value kept) { return add(kept, kept); }},
      {"return", [](Value, Value kept) { return kept; }},
      {"item()", [](Value y, Value kept) { return item(sum(sum(y, 0), 1)), item(kept), y; }},
      {"run_eagerly()",
       [](Value y, Value kept) {
         return run_eagerly({y, kept}, [](auto& v) { return v; })[0];
       }},
  };
  for (const auto& [user, use] : uses) {
    Keeper keeper;
    auto compiled = compile(eager.context, [&](Value x) { return keeper(std::move(x)); }, {.name = "f"});
    const Value x = eager.random({4, 8}, 1);
    for (int runs_between = 0; runs_between < 4; ++runs_between) {
      keeper.use = nullptr;
      compiled(x);
      const Value kept = keeper.kept;
      for (int run = 0; run < runs_between; ++run) compiled(x);
      keeper.use = use;
      keeper.kept = kept;
      const std::string said = plain_message_of([&] { compiled(x); });
      const std::string made = std::string(__FILE__) + ":" + std::to_string(keeper.line);
      EXPECT_EQ(missing_part(said, {"[f] " + user, "%1 (f32[4, 8], made by silu at " + made, "another"}), "")
          << runs_between;
    }
    keeper.use = nullptr;
    EXPECT_TRUE(same_bits(compiled(x), silu(x))) << "nothing of it is kept";
  }
}

// It was recorded with the value of its own run, which has the same position.
TEST(KeptValues, SoTheyAreWhereTheSameWasDoneBefore) {
  Eager eager;
  Value kept;
  bool is_new = true;
  auto compiled = compile(eager.context,
                          [&](Value x) {
                            const Value y = silu(x);
                            item(sum(sum(y, 0), 1));
                            if (is_new) kept = y;
                            return add(y, kept);
                          },
                          {.name = "f"});
  const Value x = eager.random({4, 8}, 1), other = eager.random({4, 8}, 2);
  for (const Value& one : {x, other, x}) EXPECT_TRUE(same_bits(compiled(one), add(silu(one), silu(one))));
  is_new = false;
  for (int call = 0; call < 2; ++call) {
    const std::string said = plain_message_of([&] { compiled(other); });
    EXPECT_TRUE(said.starts_with("[f] add wanted a value of this run, but was given %1 (f32[4, 8], made by silu"))
        << said;
  }
  is_new = true;
  EXPECT_TRUE(same_bits(compiled(other), add(silu(other), silu(other))));
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
}

TEST(KeptValues, SoAreArgumentsAndTensorsThatWereBrought) {
  Eager eager;
  const Tensor tensor = eager.random({8}, 5).tensor();
  Value argument, brought;
  bool keeps = true;
  auto compiled = compile(eager.context,
                          [&](Value x, bool is_argument) {
                            const Value b = x.home().value(tensor);
                            item(sum(sum(x, 0), 1));
                            if (keeps) argument = x, brought = b;
                            return add(add(x, b), is_argument ? argument : brought);
                          },
                          {.name = "f"});
  const Value x = eager.random({4, 8}, 1);
  compiled(x, true);
  keeps = false;
  EXPECT_EQ(
      missing_part(plain_message_of([&] { compiled(x, true); }), {"[f] add", "%argument_0 (f32[4, 8])", "another"}),
      "");
  EXPECT_EQ(missing_part(plain_message_of([&] { compiled(x, false); }),
                         {"[f] add", "%1 (f32[8], which it brought)", "another"}),
            "");
}

TEST(KeptValues, AreNotAskedForSizes) {
  Eager eager;
  Value kept;
  bool settles = false;
  auto compiled = compile(eager.context,
                          [&](Value x) {
                            item(sum(sum(x, 0), 1));
                            if (!kept.present()) return kept = silu(x);
                            return settles || guard(kept, kept.dim(0) > 4) ? mul_scalar(x, extent(kept, 0)) : x;
                          },
                          {.name = "f"});
  compiled.mark_dynamic(0, 0, {"rows", 1, 16});
  compiled(eager.random({4, 8}));
  const auto said = [&] { return plain_message_of([&] { compiled(eager.random({5, 8})); }); };
  EXPECT_EQ(missing_part(said(), {"[f]", "guard()", "another"}), "");
  settles = true;
  EXPECT_EQ(missing_part(said(), {"[f]", "extent()", "another"}), "");
}

// Objects of failed runs are used again, and still distinguished from those of later runs.
TEST(KeptValues, OfARunThatFailedAreRefused) {
  Eager eager;
  Value kept;
  double factor = 2;
  auto compiled = compile(eager.context,
                          [&](Value x) {
                            const Value y = mul_scalar(x, factor);
                            item(sum(sum(y, 0), 1));
                            if (!kept.present()) {
                              kept = y;
                              throw std::runtime_error("half way");
                            }
                            return add(y, kept);
                          },
                          {.name = "f"});
  const Value x = eager.random({4, 8});
  EXPECT_THROW(compiled(x), std::runtime_error);
  for (; factor < 5; ++factor)
    EXPECT_EQ(missing_part(plain_message_of([&] { compiled(x); }), {"[f] add", "another"}), "");
}

TEST(KeptValues, AreToldFromThoseOfTheLast4092Runs) {
  Eager eager;
  Keeper keeper;
  auto compiled = compile(eager.context, [&](Value x) { return keeper(std::move(x)); });
  const Value x = eager.random({1, 1}, 1);
  compiled(x);
  const Value kept = keeper.kept;
  for (int run = 0; run < 4091; ++run) compiled(x);
  keeper.use = [&](Value y, Value) { return add(y, kept); };
  const std::string said = plain_message_of([&] { compiled(x); });
  EXPECT_TRUE(said.ends_with(") of another")) << said;
}

}  // namespace weft::kept_values_test
