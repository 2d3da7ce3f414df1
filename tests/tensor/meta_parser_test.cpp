#include "tensor/meta_parser.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/text_cursor.h"
#include "tests/tensor/random_source.h"

namespace weft::meta_parser_test {

std::string error_of(const std::string& text) {
  try {
    return "accepted as " + parse_meta(text).text();
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(MetaParser, ReadsWhatMetaPrints) {
  for (const char* text : {"f32[s0, 576]", "bool[]", "f32[s0, 576]{960, 1}", "f32[s0, 12]{1, align(s0, 4)}",
                           "q4_1[960, 576]", "q4_1[960, 576] packed=q4x32", "kv[f16, block=16, heads=3, head_dim=64]",
                           "kv[f16, block=16, heads=1, head_dim=576, values=keys]",
                           "kv[f32, block=16, heads=4, head_dim=64, state_rows=128]", "batch", "int", "float"})
    EXPECT_EQ(parse_meta(text).text(), text);
}

TEST(MetaParser, NormalizesStrides) {
  EXPECT_EQ(parse_meta("f32[4, 8]{8, 1}").text(), "f32[4, 8]");
  EXPECT_EQ(parse_meta("f32[ 1 , 8 ]{99, 1}").text(), "f32[1, 8]");
}

TEST(MetaParser, StopsRightBehindTheType) {
  std::size_t position = 4;
  const std::string text = "%x: f32[s0, 4] on cpu)";
  parse_meta(text, position);
  EXPECT_EQ(text.substr(position), " on cpu)");
  position = 0;
  const std::string packed = "q4_0[32, 32] packed=q4x32, %y";
  EXPECT_EQ(parse_meta(packed, position).packed, "q4x32");
  EXPECT_EQ(packed.substr(position), ", %y");
  position = 0;
  const std::string batch = "batch, %n: int";
  parse_meta(batch, position);
  EXPECT_EQ(batch.substr(position), ", %n: int");
}

TEST(MetaParser, NamesColumnWantedAndFound) {
  EXPECT_EQ(error_of("f33[2]"), "line 1, column 1: expected a type, found 'f33'");
  EXPECT_EQ(error_of("f32"), "line 1, column 4: expected '[', found the end of the text");
  EXPECT_EQ(error_of("f32[2, x"), "line 1, column 9: expected ']', found the end of the text");
  EXPECT_EQ(error_of("kv[f16, heads=3]"), "line 1, column 9: expected 'block=', found 'heads'");
  EXPECT_EQ(error_of("kv[f16, block=0, heads=3, head_dim=64]"),
            "line 1, column 15: expected a number in [1, 2147483647], found '0'");
  EXPECT_EQ(error_of("kv[f16, block=1, heads=3, head_dim=64, values=both]"),
            "line 1, column 47: expected 'values=keys', found 'both'");
  EXPECT_EQ(error_of("f32[2] packed="), "line 1, column 15: expected the name of a packing, found the end of the text");
  EXPECT_EQ(error_of("f32[2] {1}"), "line 1, column 8: expected the end of the type, found '{'");
}

TEST(MetaParser, RefusesWhatNoTensorCanBe) {
  EXPECT_THROW(parse_meta("f32[1, 1, 1, 1, 1, 1, 1]"), UserError);
  EXPECT_THROW(parse_meta("f32[-4]"), UserError);
  EXPECT_THROW(parse_meta("f32[4]{1, 1}"), UserError);
  EXPECT_THROW(parse_meta("q4_0[4, 33]"), UserError);
  EXPECT_THROW(parse_meta("q4_0[4, 64]{1, 4}"), UserError);
  EXPECT_THROW(parse_meta("kv[q4_0, block=16, heads=3, head_dim=64]"), UserError);
  EXPECT_THROW(parse_meta("kv[f16, block=2147483647, heads=2147483647, head_dim=2147483647]"), UserError);
}

TEST(MetaParser, ReadsBackRandomTensors) {
  RandomSource random(1);
  const auto random_shape = [&](std::int64_t rank) {
    Shape shape;
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t n = random.integer(0, 39);
      shape.push_back(n < 30 ? Dim(n) : n < 35 ? Dim::symbol("s0") * (n - 29) : align(Dim::symbol("s1") + n, 8));
    }
    return shape;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t rank = random.integer(0, kMaxRank);
    const Shape shape = random_shape(rank);
    const Meta meta =
        random.coin() ? Meta::tensor(DType::bf16, shape) : Meta::strided(DType::i8, shape, random_shape(rank));
    ASSERT_EQ(parse_meta(meta.text()), meta) << meta.text();
  }
}

}  // namespace weft::meta_parser_test
