#include "tensor/schema.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::schema_test {

TEST(Schema, PrintsWhatItRead) {
  for (const char* text : {
           "rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor",
           "fused_add_rms_norm(Tensor x, Tensor x_residual, Tensor? weight, float epsilon, int? variance_size=None, "
           "str intermediate=f32) -> (Tensor, Tensor)",
           "concat(Tensor[] tensors, int dim) -> Tensor",
           "constant(float[] values, int[]? shape=None, ScalarType dtype=f32) -> Tensor",
           "per_token_group_quant_int8(Tensor x, int group_size, float eps=1e-10, str rounding=nearest) -> (Tensor "
           "codes, Tensor scale)",
           "rotary_embedding(Tensor positions, bool is_neox_style=True) -> Tensor",
           "print(Tensor x, str text=\"Two words\", int[] order=[1, 0]) -> ()",
           "linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor out",
           "clamp(Tensor x, float(liftable)? min=None, float(liftable) max=2.0) -> Tensor",
       })
    EXPECT_EQ(parse_schema(text).text(), text);
}

TEST(Schema, CountsLeadingTensorsAndFindsParameters) {
  const Schema schema = parse_schema("rms_norm(Tensor x, Tensor? weight, float epsilon) -> Tensor");
  EXPECT_EQ(schema.tensor_count(), 2u);
  EXPECT_EQ(schema.parameter_index("epsilon"), 2);
  EXPECT_EQ(schema.parameter_index("missing"), -1);
  EXPECT_TRUE(schema.parameters[1].optional);
  EXPECT_FALSE(schema.parameters[2].default_value.has_value());
  EXPECT_EQ(parse_schema("empty(int[] shape, ScalarType dtype) -> Tensor").tensor_count(), 0u);
}

TEST(Schema, KnowsWhichNumbersAreLiftable) {
  const Schema schema = parse_schema("op(Tensor x, float(liftable) a, float b, float(liftable)? c=1) -> Tensor");
  EXPECT_TRUE(schema.parameters[1].is_liftable);
  EXPECT_FALSE(schema.parameters[2].is_liftable);
  EXPECT_TRUE(schema.parameters[3].is_liftable && schema.parameters[3].optional);
  EXPECT_NE(schema, parse_schema("op(Tensor x, float a, float b, float(liftable)? c=1) -> Tensor"));
}

TEST(Schema, ReadsDefaultsAsTheirType) {
  const Schema schema =
      parse_schema("op(SymInt[] a=[1, s0], float b=1, str c=f32, str d=\"nearest\", bool e=False, int? f=None) -> ()");
  EXPECT_EQ(*schema.parameters[0].default_value, Attribute::shape({1, Dim::symbol("s0")}));
  EXPECT_EQ(*schema.parameters[1].default_value, Attribute(1.0));
  EXPECT_EQ(*schema.parameters[2].default_value, Attribute(EnumWord{"f32"}));
  EXPECT_EQ(*schema.parameters[3].default_value, Attribute(EnumWord{"nearest"}));
  EXPECT_EQ(*schema.parameters[4].default_value, Attribute(false));
  EXPECT_EQ(*schema.parameters[5].default_value, Attribute());
}

TEST(Schema, RefusesWhatIsNotOne) {
  for (const char* text : {"",
                           "op",
                           "op(",
                           "op()",
                           "op() ->",
                           "op(Tensor) -> Tensor",
                           "op(Tenso x) -> Tensor",
                           "op(int n, Tensor x) -> ()",
                           "op(int n, int n) -> ()",
                           "op(int n=None) -> ()",
                           "op(int n=1.5) -> ()",
                           "op(bool b=1) -> ()",
                           "op(Tensor x=3) -> ()",
                           "op(float b=\"x\") -> ()",
                           "op() -> int",
                           "op() -> (Tensor",
                           "op() -> Tensor x y",
                           "op(Tensor(a!) x) -> ()",
                           "op(*, int n) -> ()",
                           "op(int[4] n) -> ()",
                           "op(int(liftable) n) -> ()",
                           "op(Tensor(liftable) x) -> ()",
                           "op(float[](liftable) a) -> ()",
                           "op(float(lifted) a) -> ()",
                           "op(float(liftable a) -> ()",
                           "op(float?(liftable) a) -> ()"})
    EXPECT_THROW(parse_schema(text), UserError) << text;
  EXPECT_EQ(message_of([] { parse_schema("op(Tensor x, Tenso y) -> Tensor"); }),
            "line 1, column 14: expected one of Tensor Tensor[] int float bool str ScalarType int[] float[], found "
            "'Tenso'");
}

TEST(Conform, TurnsAmbiguousTextIntoTheSchemasType) {
  const Schema schema =
      parse_schema("op(float a, str b, int c, int? d, float[] e, bool f, ScalarType g, str? h) -> ()");
  const auto conformed = [&](int index, const Attribute& value) {
    return conform(value, schema.parameters[static_cast<std::size_t>(index)], "op");
  };
  EXPECT_EQ(conformed(0, 1), Attribute(1.0));
  EXPECT_EQ(conformed(1, DType::f32), Attribute(EnumWord{"f32"}));
  EXPECT_EQ(conformed(1, Dim::symbol("s0")), Attribute(EnumWord{"s0"}));
  EXPECT_EQ(conformed(1, "input_dtype"), Attribute(EnumWord{"input_dtype"}));
  EXPECT_EQ(conformed(1, "none"), Attribute("none"));
  EXPECT_EQ(conformed(1, "Two words"), Attribute("Two words"));
  EXPECT_EQ(conformed(2, EnumWord{"tokens"}), Attribute(Dim::symbol("tokens")));
  EXPECT_EQ(conformed(3, Attribute()), Attribute());
  EXPECT_EQ(conformed(4, AttributeList{1, 2.5}), Attribute(AttributeList{1.0, 2.5}));
  EXPECT_EQ(conformed(6, DType::i8), Attribute(DType::i8));
  EXPECT_EQ(conformed(7, Attribute()), Attribute());
  EXPECT_THROW(conformed(0, Attribute()), UserError);
  EXPECT_THROW(conformed(2, 1.0), UserError);
  EXPECT_THROW(conformed(4, AttributeList{"x"}), UserError);
  EXPECT_THROW(conformed(5, 1), UserError);
  EXPECT_THROW(conformed(6, EnumWord{"f33"}), UserError);
  EXPECT_EQ(message_of([&] { conformed(3, "x"); }), "[op] d must be int or none, but is \"x\"");
}

}  // namespace weft::schema_test
