#include "runtime/symbolic_size.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::symbolic_size_test {

const std::vector<std::string> kSymbols = {"s0", "s1"};
const Dim kRows = Dim::symbol("s0"), kOther = Dim::symbol("s1");

TEST(SymbolicSize, HasTheValueOfItsDim) {
  const Dim dims[] = {Dim(7),
                      kRows,
                      kRows * 3 - 2,
                      kRows * kOther + kRows + 5,
                      align(kRows, 4),
                      ceildiv(kRows * 3 + kOther, 8) * kOther,
                      floordiv(kRows - 100, 7),
                      floordiv(floordiv(kRows + 3, 5) * 2 + kOther, 3)};
  for (const Dim& dim : dims)
    for (const std::int64_t rows : {1, 2, 63, 64, 65, 512})
      for (const std::int64_t other : {1, 9}) {
        const std::int64_t values[] = {rows, other};
        EXPECT_EQ(SymbolicSize(dim, kSymbols).value(values), dim.evaluate({{"s0", rows}, {"s1", other}})) << dim.text();
      }
}

TEST(SymbolicSize, KnowsWhatIsAffine) {
  const SymbolicSize size(kOther * 6 + 2, kSymbols);
  ASSERT_TRUE(size.is_affine());
  EXPECT_EQ(size.affine().symbol, 1u);
  EXPECT_EQ(size.affine().factor, 6);
  EXPECT_EQ(size.affine().constant, 2);
  for (const Dim& dim : {kRows + kOther, kRows * kRows, align(kRows, 4)}) {
    EXPECT_FALSE(SymbolicSize(dim, kSymbols).is_affine()) << dim.text();
    EXPECT_THROW(SymbolicSize(dim, kSymbols).affine(), InternalError);
  }
}

TEST(SymbolicSize, RefusesUnknownSymbolsAndValuesBeyond64Bits) {
  EXPECT_THROW(SymbolicSize(Dim::symbol("t"), kSymbols), InternalError);
  const std::int64_t values[] = {INT64_MAX / 2, 3};
  EXPECT_THROW(SymbolicSize(kRows * kOther, kSymbols).value(values), InternalError);
}

}  // namespace weft::symbolic_size_test
