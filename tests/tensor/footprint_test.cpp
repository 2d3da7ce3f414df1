#include "tensor/footprint.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

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

}  // namespace
}  // namespace weft
