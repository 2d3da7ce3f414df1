#include "tensor/footprint.h"

#include <gtest/gtest.h>

namespace weft::footprint_test {

Meta columns(std::int64_t width, std::int64_t stride) {
  Meta meta = Meta::tensor(DType::f32, {Dim::symbol("s0"), width});
  meta.strides = {stride, 1};
  return meta;
}

TEST(Footprint, TellsColumnsOfOneMatrixApart) {
  const Footprint left = footprint(columns(8, 32), 0);
  EXPECT_EQ(left.width, 8);
  EXPECT_EQ(left.row_stride, 32);
  EXPECT_FALSE(may_overlap(left, footprint(columns(8, 32), 8)));
  EXPECT_TRUE(may_overlap(left, footprint(columns(8, 32), 7)));
  EXPECT_TRUE(may_overlap(left, footprint(columns(32, 32), 0)));
  EXPECT_TRUE(may_overlap(left, footprint(columns(8, 16), 8))) << "rows of another length";
}

TEST(Footprint, TakesWhatItCannotSayForTheWholeStorage) {
  const Footprint known = footprint(columns(8, 32), 0);
  EXPECT_EQ(footprint(Meta::tensor(DType::f32, {Dim::symbol("s0")}), 0).width, -1) << "no columns";
  EXPECT_EQ(footprint(columns(8, 32), Dim::symbol("s0")).width, -1) << "an offset that is no number";
  EXPECT_EQ(footprint(columns(8, 32), 30).width, -1) << "a row that wraps";
  EXPECT_EQ(footprint(Meta::tensor(DType::q4_1, {64, 64}), 0).width, -1) << "blocks";
  EXPECT_TRUE(may_overlap(known, footprint(columns(8, 32), Dim::symbol("s0"))));
}

TEST(Footprint, TellsViewsThatLieOneBehindTheOtherApart) {
  const Meta eight = Meta::tensor(DType::f32, {2, 4});
  EXPECT_FALSE(may_overlap(eight, 0, eight, 32));
  EXPECT_FALSE(may_overlap(eight, 32, eight, 0));
  EXPECT_TRUE(may_overlap(eight, 0, eight, 31));
  EXPECT_TRUE(may_overlap(eight, 31, eight, 0));
  EXPECT_FALSE(may_overlap(eight, 0, Meta::tensor(DType::i8, {3}), 32)) << "whatever the types";
  EXPECT_TRUE(may_overlap(eight, 0, Meta::tensor(DType::i8, {3}), 31));
  EXPECT_FALSE(may_overlap(Meta::tensor(DType::q4_1, {2, 32}), 0, eight, 40)) << "blocks have a size, too";
  // Three rows of 4, 32 elements apart, end 68 elements after the begin of their first.
  const Meta spread = Meta::strided(DType::f32, {3, 4}, {32, 1});
  EXPECT_TRUE(may_overlap(spread, 0, eight, 67 * 4));
  EXPECT_FALSE(may_overlap(spread, 0, eight, 68 * 4));
}

TEST(Footprint, TellsViewsOfOtherColumnsApartByTheirBytes) {
  const Meta left = Meta::strided(DType::f32, {3, 8}, {32, 1}), symbolic = columns(8, 32);
  for (const Meta& meta : {left, symbolic}) {
    EXPECT_FALSE(may_overlap(left, 0, meta, 8 * 4));
    EXPECT_FALSE(may_overlap(meta, 8 * 4, left, 0));
    EXPECT_TRUE(may_overlap(left, 0, meta, 7 * 4));
    EXPECT_TRUE(may_overlap(left, 0, meta, 8 * 4 - 2)) << "half an element of the left one";
    EXPECT_TRUE(may_overlap(left, 0, meta, 8 * 4 + 2)) << "not a whole number of elements";
    EXPECT_TRUE(may_overlap(left, 0, meta, Dim::symbol("s0")));
  }
  Meta halves = left;
  halves.dtype = DType::f16;
  EXPECT_TRUE(may_overlap(left, 0, halves, 8 * 4)) << "elements of another size";
}

TEST(Footprint, HoldsWhatHasNoSizeToReachToTheEnd) {
  const Meta four = Meta::tensor(DType::f32, {4});
  const Meta unknown = Meta::tensor(DType::f32, {Dim::symbol("s0")});
  Meta packed = Meta::tensor(DType::f32, {4});
  packed.packed = "q4x32";
  for (const Meta& meta : {unknown, packed, Meta::pages({})}) {
    EXPECT_TRUE(may_overlap(meta, 0, four, 1024)) << meta.text();
    EXPECT_TRUE(may_overlap(four, 1024, meta, 0)) << meta.text();
    EXPECT_FALSE(may_overlap(meta, 16, four, 0)) << meta.text();
  }
  EXPECT_TRUE(may_overlap(Meta::tensor(DType::f4e2m1, {2, 4}), 0, Meta::strided(DType::f4e2m1, {2, 4}, {6, 1}), 2))
      << "two elements a byte";
}

TEST(Footprint, KnowsThatNothingMeetsNoElements) {
  const Meta four = Meta::tensor(DType::f32, {4});
  EXPECT_FALSE(may_overlap(four, 0, Meta::tensor(DType::f32, {0, 4}), 4));
  EXPECT_FALSE(may_overlap(Meta::strided(DType::f32, {0, 4}, {32, 1}), 4, four, 0));
}

}  // namespace weft::footprint_test
