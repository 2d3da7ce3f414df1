#include "tensor/meta.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::meta_test {

const Dim s0 = Dim::symbol("s0");

TEST(Meta, PrintsEveryKind) {
  EXPECT_EQ(Meta::tensor(DType::f32, {s0, 576}).text(), "f32[s0, 576]");
  EXPECT_EQ(Meta::tensor(DType::bf16, {}).text(), "bf16[]");
  EXPECT_EQ(Meta::strided(DType::f32, {s0, 576}, {960, 1}).text(), "f32[s0, 576]{960, 1}");
  EXPECT_EQ(Meta::strided(DType::f32, {s0, 12}, {1, align(s0, 4)}).text(), "f32[s0, 12]{1, align(s0, 4)}");
  EXPECT_EQ(Meta::pages({DType::f16, 16, 3, 64}).text(), "kv[f16, block=16, heads=3, head_dim=64]");
  EXPECT_EQ(Meta::pages({DType::f16, 16, 1, 576, true}).text(),
            "kv[f16, block=16, heads=1, head_dim=576, values=keys]");
  EXPECT_EQ(Meta::batch().text(), "batch");
  Meta number;
  number.kind = MetaKind::integer;
  EXPECT_EQ(number.text(), "int");
  number.kind = MetaKind::real;
  EXPECT_EQ(number.text(), "float");
  Meta packed = Meta::tensor(DType::q4_1, {960, 576});
  packed.packed = "q4x32";
  EXPECT_EQ(packed.text(), "q4_1[960, 576] packed=q4x32");
}

TEST(Meta, DropsContiguousStrides) {
  EXPECT_EQ(Meta::strided(DType::f32, {s0, 4, 5}, {20, 5, 1}), Meta::tensor(DType::f32, {s0, 4, 5}));
  EXPECT_EQ(Meta::strided(DType::f32, {3, s0}, {s0, 1}), Meta::tensor(DType::f32, {3, s0}));
  EXPECT_EQ(Meta::strided(DType::q4_0, {4, 64}, {64, 1}), Meta::tensor(DType::q4_0, {4, 64}));
}

TEST(Meta, NormalizesStridesOfExtentOneAway) {
  EXPECT_EQ(Meta::strided(DType::f32, {1, 5}, {77, 1}), Meta::tensor(DType::f32, {1, 5}));
  EXPECT_EQ(Meta::strided(DType::f32, {2, 1, 4}, {8, 3, 1}).text(), "f32[2, 1, 4]{8, 4, 1}");
  EXPECT_EQ(Meta::strided(DType::f32, {2, 4}, {0, 1}).text(), "f32[2, 4]{0, 1}");
}

TEST(Meta, SpellsOutStridesAndBytes) {
  EXPECT_EQ(Meta::tensor(DType::f32, {s0, 9, 64}).full_strides(), (Shape{576, 64, 1}));
  EXPECT_EQ(Meta::strided(DType::f32, {s0, 4}, {1, s0}).full_strides(), (Shape{1, s0}));
  EXPECT_EQ(Meta::tensor(DType::f32, {s0, 576}).bytes(), s0 * 2304);
  EXPECT_EQ(Meta::tensor(DType::q4_1, {960, 576}).bytes(), Dim(960 * 576 / 32 * 20));
  EXPECT_EQ(Meta::tensor(DType::f4e2m1, {3, 8}).bytes(), Dim(12));
  EXPECT_EQ(Meta::tensor(DType::f32, {0, 8}).bytes(), Dim(0));
  EXPECT_EQ(Meta::strided(DType::f32, {s0, 4}, {1, s0}).bytes(), s0 * 16);
  EXPECT_EQ(Meta::strided(DType::f32, {5, 3}, {1, 8}).bytes(), Dim(84));
  EXPECT_EQ(Meta::strided(DType::f32, {0, 3}, {1, 8}).bytes(), Dim(0));
  EXPECT_THROW(Meta::batch().bytes(), InternalError);
  EXPECT_THROW(Meta::tensor(DType::f32, {INT64_MAX, 4}).bytes(), UserError);
}

TEST(Meta, RefusesWhatNoTensorCanBe) {
  EXPECT_THROW(Meta::tensor(DType::f32, {-1}), UserError);
  EXPECT_THROW(Meta::tensor(DType::f32, Shape(7, Dim(1))), UserError);
  EXPECT_THROW(Meta::tensor(DType::q4_0, {4, 33}), UserError);
  EXPECT_THROW(Meta::tensor(DType::i4, {4, 3}), UserError);
  EXPECT_THROW(Meta::tensor(DType::q8_0, {}), UserError);
  EXPECT_THROW(Meta::strided(DType::f32, {4, 4}, {1}), UserError);
  EXPECT_THROW(Meta::strided(DType::f32, {4, 4}, {-4, 1}), UserError);
  EXPECT_THROW(Meta::strided(DType::q4_0, {4, 64}, {128, 1}), UserError);
}

TEST(Meta, EqualityIsOverEveryFact) {
  const Meta meta = Meta::tensor(DType::f32, {s0, 4});
  EXPECT_EQ(meta, Meta::tensor(DType::f32, {s0, 4}));
  EXPECT_NE(meta, Meta::tensor(DType::f16, {s0, 4}));
  EXPECT_NE(meta, Meta::tensor(DType::f32, {s0, 5}));
  EXPECT_NE(meta, Meta::strided(DType::f32, {s0, 4}, {8, 1}));
  Meta other = meta;
  other.packed = "q4x32";
  EXPECT_NE(meta, other);
  other = meta;
  other.device = {DeviceType::cuda, 0};
  EXPECT_NE(meta, other);
}

}  // namespace weft::meta_test
