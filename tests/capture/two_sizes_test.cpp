// Two tensors whose rows have nothing to do with each other.

#include <gtest/gtest.h>

#include "capture/compile.h"
#include "ir/reading.h"
#include "ops/concat.h"
#include "ops/mul.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "ops/slice.h"
#include "ops/sum.h"
#include "tests/capture/functions.h"
#include "tests/thrown_message.h"

namespace weft::two_sizes_test {

// Graphs have one symbol for rows. Of two sizes that were marked apart the first is it; the other is compiled number by
// number.
TEST(TwoSizes, AreASymbolAndANumber) {
  Eager eager;
  using Pair = std::pair<Value, Value>;
  const std::vector<std::function<Pair(Value, Value)>> functions{
      [](Value x, Value y) { return Pair(silu(x), silu(y)); },
      [](Value x, Value y) { return Pair(x, y); },
      [](Value x, Value y) {
        const Value a = guard(x, x.dim(0) > 8) ? silu(x) : sigmoid(x);
        return Pair(a, guard(y, y.dim(0) > 8) ? silu(y) : sigmoid(y));
      },
      [](Value x, Value y) { return Pair(guard(x, x.dim(0) > y.dim(0)) ? silu(x) : sigmoid(x), silu(y)); },
      [](Value x, Value y) {
        return Pair(concat({x, y}, 0), x);
      },
  };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    std::ostringstream& said = eager.log("recompiles");
    said.str("");
    auto compiled = compile(eager.context, functions[i], {.name = "f", .recompile_limit = 64});
    compiled.mark_dynamic(0, 0, {"a", 1, 16});
    compiled.mark_dynamic(1, 0, {"b", 1, 16});
    for (const auto& [rows, others] :
         std::vector<std::pair<int, int>>{{12, 3}, {3, 3}, {16, 3}, {1, 3}, {5, 12}, {12, 12}, {3, 12}, {9, 12}}) {
      const Value x = eager.random({rows, 8}, 1), y = eager.random({others, 8}, 2);
      const Pair came = compiled(x, y), wanted = functions[i](x, y);
      EXPECT_TRUE(same_bits(came.first, wanted.first)) << i << " " << rows << " " << others;
      EXPECT_TRUE(same_bits(came.second, wanted.second)) << i << " " << rows << " " << others;
    }
    EXPECT_EQ(compiled.captured().counts().op_by_op, 0) << i;
    const std::int64_t entries[] = {2, 1, 4, 4, 8};  // by b, and by the side of a; of a concat by both
    EXPECT_EQ(compiled.captured().counts().compiled, entries[i]) << i;
    EXPECT_EQ(said.str().find("[recompiles] f: b is compiled number by number, as [f] cannot be compiled for sizes of "
                              "all its range") == std::string::npos,
              i == 1)
        << said.str();
    EXPECT_TRUE(plain_message_of([&] {
                  compiled(eager.random({3, 8}), eager.random({17, 8}));
                }).starts_with("[f] b must be in [1, 16]"));
  }
}

TEST(TwoSizes, WhatIsUnbackedStaysASymbol) {
  Eager eager;
  auto compiled = compile(eager.context, [](Value x, Value y) { return std::pair(silu(x), silu(y)); });
  compiled.mark_dynamic(0, 0, {"a", 1, 16});
  compiled.mark_unbacked(1, 0, {"b", 1, 16});
  for (const int others : {3, 12, 16}) {
    const Value x = eager.random({5, 8}, 1), y = eager.random({others, 8}, 2);
    EXPECT_TRUE(same_bits(compiled(x, y).second, silu(y))) << others;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
}

// The sizes of a value that is only returned or only read as a whole do not govern the rows, whichever comes first.
TEST(TwoSizes, OfWhichOneIsComputedWithMayBothBeSymbols) {
  Eager eager;
  const std::vector<std::function<std::pair<Value, Value>(Value, Value)>> functions{
      [](Value y, Value x) { return std::pair(y, silu(x)); },
      [](Value y, Value x) { return std::pair(slice(silu(x), 0, 0, 1), y); },
  };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    auto compiled = compile(eager.context, functions[i], {.name = "f"});
    compiled.mark_dynamic(0, 0, {"b", 1, 16});
    compiled.mark_dynamic(1, 0, {"a", 1, 16});
    for (const auto& [others, rows] : std::vector<std::pair<int, int>>{{3, 12}, {5, 3}, {12, 16}}) {
      const Value y = eager.random({others, 8}, 1), x = eager.random({rows, 8}, 2);
      const auto came = compiled(y, x), wanted = functions[i](y, x);
      EXPECT_TRUE(same_bits(came.first, wanted.first)) << i << " " << rows << " " << others;
      EXPECT_TRUE(same_bits(came.second, wanted.second)) << i << " " << rows << " " << others;
    }
    EXPECT_EQ(compiled.captured().counts().compiled, 1) << i;
  }
}

// The same for rows that are not marked.
TEST(TwoSizes, ThatWereSeenToChangeAreASymbolAndANumber) {
  Eager eager;
  const auto function = [](Value x, Value y) { return std::pair(silu(x), silu(y)); };
  auto compiled = compile(eager.context, function, {.name = "f"});
  for (const auto& [rows, others] :
       std::vector<std::pair<int, int>>{{1, 3}, {2, 5}, {7, 5}, {4, 5}, {9, 3}, {8, 3}, {3, 5}}) {
    const Value x = eager.random({rows, 8}, 1), y = eager.random({others, 8}, 2);
    const auto came = compiled(x, y);
    EXPECT_TRUE(same_bits(came.first, silu(x)) && same_bits(came.second, silu(y))) << rows << " " << others;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 3);
}

// Each graph of a function with graph breaks has a symbol of its own.
TEST(TwoSizes, InGraphsOfTheirOwnMayBothBeSymbols) {
  Eager eager;
  int effects = 0;
  const auto function = [&](Value x, Value y) {
    const Value a = silu(x);
    item(sum(sum(a, 0), 1));
    ++effects;
    const Value b = silu(y);
    item(sum(sum(b, 0), 1));
    return std::pair(mul(a, a), b);
  };
  auto compiled = compile(eager.context, function, {.name = "f"});
  compiled.mark_dynamic(0, 0, {"a", 1, 16});
  compiled.mark_dynamic(1, 0, {"b", 1, 16});
  int calls = 0;
  for (const auto& [rows, others] : std::vector<std::pair<int, int>>{{1, 3}, {2, 5}, {16, 1}, {4, 4}}) {
    const Value x = eager.random({rows, 8}, 1), y = eager.random({others, 8}, 2);
    const auto came = compiled(x, y);
    EXPECT_EQ(effects, ++calls);
    EXPECT_TRUE(same_bits(came.first, mul(silu(x), silu(x))) && same_bits(came.second, silu(y))) << rows;
  }
  EXPECT_EQ(compiled.captured().counts().compiled, 1);
  EXPECT_EQ(compiled.captured().counts().op_by_op, 0);
}

}  // namespace weft::two_sizes_test
