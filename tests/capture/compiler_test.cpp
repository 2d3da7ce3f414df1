// The C++ interface of include/weft: the options of a Compiler apply to the functions that it compiles.

#include <gtest/gtest.h>
#include <weft/compile.h>

#include "tests/thrown_message.h"

namespace weft::compiler_test {

TEST(Compiler, ValuesAreMadeOfNumbers) {
  Compiler compiler;
  EXPECT_EQ(to_text(compiler.value({2, 2}, {1, 2, 3, 4})), "f32[2, 2] (1, 2, 3, 4)");
  EXPECT_EQ(plain_message_of([&] {
              compiler.value({2, 2}, {1, 2, 3});
            }),
            "[value] wanted 4 numbers for [2, 2], but got 3");
}

// How often `silu` is compiled in three calls with these options.
std::int64_t compiled_with(Options options) {
  options.disable_compile_cache = true;
  Compiler compiler(std::move(options));
  auto fast = compiler.compile([](Value x) { return silu(x); });
  const Value x = compiler.value({1, 3}, {-1, 0, 1});
  fast.prepare(x);
  for (int call = 0; call < 3; ++call) EXPECT_EQ(numbers(fast(x)), numbers(silu(x)));
  return fast.captured().counts().compiled;
}

TEST(Compiler, ModesAndLevelsSayWhetherAnythingIsCompiled) {
  EXPECT_EQ(compiled_with({}), 1);
  for (const char* mode : {"stock", "trace_once", "weft"}) {
    Options options;
    options.mode = mode;
    EXPECT_EQ(compiled_with(options), 1) << mode;
  }
  Options none;
  none.mode = "none";
  EXPECT_EQ(compiled_with(none), 0);
  for (int level = 0; level <= 3; ++level) {
    Options options;
    options.optimization_level = level;
    EXPECT_EQ(compiled_with(options), level == 0 ? 0 : 1) << level;
    options.enforce_eager = true;
    EXPECT_EQ(compiled_with(options), 0) << "enforce_eager beats all";
    options.mode = "weft";
    EXPECT_EQ(compiled_with(options), 0) << "a mode, too";
    options.enforce_eager = false;
    EXPECT_EQ(compiled_with(options), 1) << "a level fills only what is left open: " << level;
  }
  Options eager_backend;
  eager_backend.backend = "eager";
  EXPECT_EQ(compiled_with(eager_backend), 1);
}

TEST(Compiler, CheckRetraceIsTheDefaultOfFunctions) {
  Options options;
  options.disable_compile_cache = true;
  set_option(options, "check-retrace", "2", "test");
  Compiler compiler(std::move(options));
  double factor = 2;
  const auto function = [&](Value x) { return mul_scalar(x, factor); };
  auto checked = compiler.compile(function, {.name = "f"});
  auto rarely = compiler.compile(function, {.options = {{"check-retrace", "4"}}});
  auto never = compiler.compile(function, {.check_retrace = 0});
  const Value x = compiler.value({1, 3}, {-1, 0, 1});
  for (int call = 0; call < 9; ++call)
    for (auto* one : {&checked, &rarely, &never}) (*one)(x);
  EXPECT_EQ(checked.captured().counts().retraces, 4);
  EXPECT_EQ(rarely.captured().counts().retraces, 2);
  EXPECT_EQ(never.captured().counts().retraces, 0);
  factor = 3;
  EXPECT_NE(plain_message_of([&] {
              for (int call = 0; call < 2; ++call) checked(x);
            }).find("[f] wanted a function that does the same in every call"),
            std::string::npos);
}

TEST(Compiler, CompilesAnOpByItsName) {
  Compiler compiler;
  const Value x = compiler.value({1, 3}, {-1, 0, 1});
  auto one = compiler.compile(silu);
  auto two = compiler.compile(add);
  auto three = compiler.compile(linear);
  EXPECT_EQ(numbers(three(x, x, Value())), numbers(linear(x, x)));
  EXPECT_EQ(numbers(one(x)), numbers(silu(x)));
  EXPECT_EQ(numbers(two(x, x)), numbers(add(x, x)));
}

TEST(Compiler, OneFunctionMayHaveOptionsOfItsOwn) {
  Options options;
  options.disable_compile_cache = true;
  Compiler compiler(std::move(options));
  const auto function = [](Value x) { return silu(x); };
  auto plain = compiler.compile(function);
  auto eager = compiler.compile(function, {.mode = "none"});
  auto other = compiler.compile(function, {.backend = "eager"});
  auto stopped = compiler.compile(function, {.options = {{"enforce-eager", "true"}}});
  const Value x = compiler.value({1, 3}, {-1, 0, 1});
  for (auto* one : {&plain, &eager, &other, &stopped}) EXPECT_EQ(numbers((*one)(x)), numbers(silu(x)));
  EXPECT_EQ(plain.captured().counts().compiled, 1);
  EXPECT_EQ(eager.captured().counts().compiled, 0);
  EXPECT_EQ(other.captured().counts().compiled, 1);
  EXPECT_EQ(stopped.captured().counts().compiled, 0);
  const std::string said = message_of([&] { compiler.compile(function, {.mode = "fastest"}); });
  EXPECT_NE(said.find("cc.mode"), std::string::npos) << said;
  EXPECT_NE(said.find("compile()"), std::string::npos) << said;
  EXPECT_NE(message_of([&] { compiler.compile(function, {.backend = "fastest"}); }).find("cc.backend"),
            std::string::npos);
  const std::string unknown = message_of([&] { compiler.compile(function, {.options = {{"no-such", "1"}}}); });
  EXPECT_NE(unknown.find("no-such"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("compiler_test.cpp:"), std::string::npos) << unknown;
  EXPECT_EQ(
      missing_part(plain_message_of([&] { compile(compiler.context(), function, {.name = "f", .mode = "none"}); }),
                   {"[f] mode", "weft::Compiler"}),
      "");
}

TEST(Compiler, IsForTheCpu) {
  Options options;
  options.device = "fake-cuda";
  const std::string wanted =
      "[compile] functions are compiled for the CPU alone: wanted the device cpu, but is fake-cuda:0";
  EXPECT_EQ(plain_message_of([&] { Compiler compiler(options); }), wanted);
  Compiler compiler;
  EXPECT_EQ(plain_message_of([&] {
              compiler.compile([](Value x) { return silu(x); }, {.options = {{"device", "fake-cuda"}}});
            }),
            wanted);
}

TEST(Compiler, ValuesOfTwoDoNotMeet) {
  Compiler one, other;
  auto fast = one.compile([](Value x, Value y) { return add(x, y); }, {.name = "f"});
  const Value x = one.value({1, 2}, {1, 2}), y = other.value({1, 2}, {3, 4});
  EXPECT_EQ(plain_message_of([&] { fast(x, y); }),
            "[f] wanted values of one home, but argument 1 is of another than argument 0: values of two Compilers do "
            "not meet; value(tensor) of one takes a tensor of the other");
  EXPECT_EQ(numbers(fast(x, one.value(y.tensor()))), (std::vector<double>{4, 6}));
}

}  // namespace weft::compiler_test
