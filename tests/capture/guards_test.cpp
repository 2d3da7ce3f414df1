// A call whose arguments differ from those of the compiled entry is compiled anew, and both entries are kept.

#include "capture/guards.h"

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "ops/cast.h"
#include "ops/mul_scalar.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "tests/capture/functions.h"

namespace weft::guards_test {

enum class Kind { doubled, plain };

Value shaped(Value x, std::optional<Value> y, int times, double scale, const std::string& name, bool twice, Kind kind) {
  for (int i = 0; i < times; ++i) x = mul_scalar(x, scale);
  if (name == "silu") x = silu(x);
  if (twice) x = mul_scalar(x, 2.0);
  if (kind == Kind::doubled) x = mul_scalar(x, 2.0);
  return y ? silu(*y) : x;
}

// Each row of arguments is compiled once, and found again afterwards.
TEST(Guards, EveryKindOfArgumentIsLookedAt) {
  Eager eager;
  auto compiled = compile(eager.context, shaped, {.dynamic = Dynamic::no, .recompile_limit = 20});
  const Value x = eager.random({4, 8});
  const std::vector<std::tuple<Value, std::optional<Value>, int, double, std::string, bool, Kind>> calls{
      {x, std::nullopt, 1, 0.5, "silu", false, Kind::plain},
      {eager.random({5, 8}), std::nullopt, 1, 0.5, "silu", false, Kind::plain},
      {eager.random({4, 2, 4}), std::nullopt, 1, 0.5, "silu", false, Kind::plain},
      {cast(x, DType::bf16), std::nullopt, 1, 0.5, "silu", false, Kind::plain},
      {slice(eager.random({4, 16}), 1, 0, 8), std::nullopt, 1, 0.5, "silu", false, Kind::plain},
      {slice(eager.random({4, 24}), 1, 0, 8), std::nullopt, 1, 0.5, "silu", false, Kind::plain},
      {x, x, 1, 0.5, "silu", false, Kind::plain},
      {x, std::nullopt, 2, 0.5, "silu", false, Kind::plain},
      {x, std::nullopt, 1, 0.25, "silu", false, Kind::plain},
      {x, std::nullopt, 1, 0.5, "", false, Kind::plain},
      {x, std::nullopt, 1, 0.5, "silu", true, Kind::plain},
      {x, std::nullopt, 1, 0.5, "silu", false, Kind::doubled},
  };
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_TRUE(same_bits(std::apply(compiled, calls[i]), std::apply(shaped, calls[i]))) << i;
      EXPECT_EQ(compiled.captured().counts().compiled,
                round == 0 ? static_cast<std::int64_t>(i) + 1 : static_cast<std::int64_t>(calls.size()))
          << i;
    }
}

TEST(Guards, DevicesAreLookedAt) {
  Eager eager;
  Meta elsewhere = Meta::tensor(DType::f32, {4});
  const Value here = Value::of_meta(eager.home, elsewhere);
  elsewhere.device = {DeviceType::fake_cuda, 0};
  const Value there = Value::of_meta(eager.home, elsewhere);
  GuardList guards;
  guards.add_leaf(0, {.kind = Leaf::Kind::tensor, .value = &here});
  const Leaf leaf{.kind = Leaf::Kind::tensor, .value = &there};
  EXPECT_FALSE(guards.hold({&leaf, 1}));
  const std::vector<std::string> names{"0"};
  const GuardList::Failure failure = guards.first_failure({&leaf, 1}, names);
  EXPECT_EQ(failure.guard, "argument 0 is f32 of rank 1 on cpu");
  EXPECT_EQ(failure.came, "f32 of rank 1 on fake-cuda:0");
}

TEST(Guards, EachOfManyArgumentsIsLookedAt) {
  constexpr std::size_t kFar = (1 << 16) + 5;
  std::vector<Leaf> leaves(kFar + 1, {.kind = Leaf::Kind::integer, .number = 7});
  GuardList guards;
  guards.add_leaf(kFar, leaves[kFar]);
  EXPECT_TRUE(guards.hold(leaves));
  leaves[kFar].number = 8;
  EXPECT_FALSE(guards.hold(leaves));
}

TEST(Guards, AreSaid) {
  Eager eager;
  std::ostringstream& said = eager.log("+guards,+recompiles");
  auto compiled = compile(eager.context, [](Value x, int times, const std::string&) { return mul_scalar(x, times); },
                          {.name = "f"});
  compiled(eager.random({4, 8}), 3, "a");
  EXPECT_EQ(said.str(),
            "[guards] f: entry 0 has 5 guards\n"
            "[guards] f: entry 0: argument 0 is f32 of rank 2 on cpu\n"
            "[guards] f: entry 0: argument 0 dim 0 == 4\n"
            "[guards] f: entry 0: argument 0 dim 1 == 8\n"
            "[guards] f: entry 0: argument 1 == 3\n"
            "[guards] f: entry 0: argument 2 == \"a\"\n");
  said.str("");
  compiled(eager.random({4, 8}), 4, "a");
  EXPECT_EQ(said.str().substr(0, said.str().find('\n')),
            "[recompiles] f: no entry 0: wanted argument 1 == 3, but is 4");
}

TEST(Guards, BehindTheLimitCallsRunOpByOpAndTheGuardThatKeepsFailingIsNamed) {
  Eager eager{kernel_context()};
  auto compiled = compile(eager.context, [](Value x, int times) { return mul_scalar(x, times); }, {.name = "f"});
  const Value x = eager.random({4, 8});
  testing::internal::CaptureStderr();
  for (int times = 0; times < 12; ++times) EXPECT_TRUE(same_bits(compiled(x, times), mul_scalar(x, times)));
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "weft: [f] was compiled 8 times, so calls that no guards let in run op by op from now on; what keeps changing "
      "is argument 1 (wanted argument 1 == 7, but is 8)\n");
  EXPECT_EQ(compiled.captured().counts().compiled, 8);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 4);
  EXPECT_TRUE(same_bits(compiled(x, 3), mul_scalar(x, 3)));
  EXPECT_EQ(compiled.captured().counts().op_by_op, 4) << "what was compiled stays";
}

}  // namespace weft::guards_test
