// Compiled and eager runs agree: random functions give the same bits in both, for all sizes and numbers.

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "tests/cache/cache_case.h"
#include "tests/capture/functions.h"
#include "tests/capture/random_function.h"
#include "tests/property.h"
#include "tests/thrown_message.h"

namespace rc {

template <>
struct Arbitrary<weft::FunctionRecipe> {
  static Gen<weft::FunctionRecipe> arbitrary() {
    constexpr int kChoices = 5040;  // divides evenly among every small count of choices
    const auto choice = weft::number_in(0, kChoices);
    const auto statement = gen::build<weft::StatementRecipe>(
        gen::set(&weft::StatementRecipe::kind, choice), gen::set(&weft::StatementRecipe::first, choice),
        gen::set(&weft::StatementRecipe::second, choice), gen::set(&weft::StatementRecipe::detail, choice));
    return gen::build<weft::FunctionRecipe>(gen::set(&weft::FunctionRecipe::statements, weft::at_most(24, statement)),
                                            gen::set(&weft::FunctionRecipe::result, choice));
  }
};

}  // namespace rc

namespace weft::capture_property_test {

struct Totals {
  RandomFunction::Features features{};
  std::int64_t calls = 0, compiled = 0, op_by_op = 0, retraces = 0, proved = 0, boundaries = 0, checks = 0, refused = 0;

  void add(const RandomFunction& function, const CaptureCounts& counts) {
    const RandomFunction::Features more = function.features();
    for (std::size_t i = 0; i < features.size(); ++i) features[i] += more[i];
    calls += counts.calls;
    compiled += counts.compiled;
    op_by_op += counts.op_by_op;
    retraces += counts.retraces;
    proved += counts.proved;
    boundaries += counts.boundaries;
    checks += counts.checks;
  }
};

// How a case compiles: by the numbers of its recipe, so that they shrink with it.
CompileOptions options_of(const FunctionRecipe& recipe) {
  CompileOptions options{.name = "f", .check_retrace = recipe.result % 3};
  options.dynamic = static_cast<Dynamic>(recipe.result % 2 == 0 ? 2 : recipe.result / 2 % 3);
  return options;
}

struct Observed {
  Values values;
  std::string printed;
};

std::string difference(const Observed& came, const Observed& wanted) {
  if (came.printed != wanted.printed) return "printed " + came.printed + " instead of " + wanted.printed;
  for (std::size_t i = 0; i < wanted.values.size(); ++i)
    if (!same_bits(came.values[i], wanted.values[i])) return "result " + std::to_string(i) + " differs";
  return "";
}

void check_functions(Eager& eager, int cases, Totals& totals) {
  const Value weight = eager.random({RandomFunction::kWidth}, 7);
  const Tensor brought = eager.random({RandomFunction::kWidth}, 8).tensor();
  testing::internal::CaptureStderr();  // warnings about functions that run op by op
  check_property(cases, [&](const FunctionRecipe& recipe) {
    const RandomFunction function(recipe, brought);
    auto compiled = compile(eager.context, function, options_of(recipe));
    for (int argument = 0; argument < 2 && function.is_marked(); ++argument)
      compiled.mark_dynamic(argument, 0, {"rows", 0, 12});
    if (function.is_other_marked()) compiled.mark_dynamic(2, 0, {"others", 1, 12});
    if (function.is_refused()) {
      const Value x = eager.random({4, RandomFunction::kWidth}), y = eager.random({4, RandomFunction::kWidth}, 2);
      const std::string said = message_of([&] { compiled(x, y, x, weight, 1); });
      RC_ASSERT(said.find("donates a tensor that is no argument") != std::string::npos);
      ++totals.refused;
      return;
    }
    std::uint64_t seed = 1;
    struct Call {
      std::int64_t rows, others, number;
    };
    for (const auto& [rows, others, number] : std::vector<Call>{
             {4, 3, 1}, {4, 3, 1}, {1, 3, 1}, {7, 5, 1}, {0, 5, 1}, {7, 5, 3}, {12, 5, 1}, {4, 4, 1}, {7, 3, 1}}) {
      // Both overwrite their arguments.
      const auto call = [&, rows = rows, others = others, number = number](auto& called) {
        Values values = called(eager.random({rows, RandomFunction::kWidth}, seed),
                               eager.random({rows, RandomFunction::kWidth}, seed + 1),
                               eager.random({others, RandomFunction::kWidth}, seed + 2), weight, number);
        return Observed{std::move(values), function.take_printed()};
      };
      const std::string found = difference(call(compiled), call(function));
      ++seed;
      if (!found.empty())
        RC_FAIL(found + " with " + std::to_string(rows) + " rows, " + std::to_string(others) + " others and " +
                std::to_string(number));
    }
    totals.add(function, compiled.captured().counts());
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("rror"), std::string::npos) << said;
}

TEST(CaptureProperty, CompiledFunctionsGiveTheBitsOfPlainOnes) {
  Eager eager{kernel_context()};
  Totals totals;
  check_functions(eager, 500, totals);
  for (std::size_t i = 0; i < totals.features.size(); ++i) {
    EXPECT_GT(totals.features[i], 20) << RandomFunction::feature_text(static_cast<RandomFunction::Feature>(i));
    std::cout << "count: " << RandomFunction::feature_text(static_cast<RandomFunction::Feature>(i)) << " "
              << totals.features[i] << "\n";
  }
  std::cout << "count: calls " << totals.calls << ", compiled " << totals.compiled << ", op by op " << totals.op_by_op
            << ", retraces " << totals.retraces << ", proved " << totals.proved << ", boundaries " << totals.boundaries
            << ", checks " << totals.checks << ", refused " << totals.refused << "\n";
  for (const std::int64_t count : {totals.retraces, totals.proved, totals.boundaries, totals.checks})
    EXPECT_GT(count, 20);
  EXPECT_GT(totals.refused, 0);
  EXPECT_LT(totals.op_by_op, totals.calls / 3);
}

TEST(CaptureProperty, AndSoWithGeneratedCode) {
  Eager eager;
  Totals totals;
  check_functions(eager, 30, totals);
  EXPECT_GT(totals.compiled, 30);
}

// All functions share one cache, so two graphs with one key would show.
TEST(CaptureProperty, AndSoWithPlansFromTheCompileCache) {
  CacheCase files;
  std::int64_t compiled = 0;
  for (const bool is_filled : {false, true}) {
    Eager eager{kernel_context()};
    eager.context->cache = files.open();
    Totals totals;
    check_functions(eager, 100, totals);
    const CacheCounters counters = eager.context->cache->counters();
    compiled += eager.context->first_time_work->counts(FirstTime::compile).before_ready;
    EXPECT_EQ(counters.stores, is_filled ? 0 : compiled);
    EXPECT_GT(counters.hits, 100);
  }
  EXPECT_GT(compiled, 100) << "by the first Context alone";
  EXPECT_EQ(files.warnings, std::vector<std::string>());
}

}  // namespace weft::capture_property_test
