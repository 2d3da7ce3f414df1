#include "tensor/attribute.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::attribute_test {

TEST(Attribute, PrintsAsGraphsSpellIt) {
  EXPECT_EQ(Attribute().text(), "none");
  EXPECT_EQ(Attribute(true).text(), "true");
  EXPECT_EQ(Attribute(128).text(), "128");
  EXPECT_EQ(Attribute(Dim::symbol("s0") + 1).text(), "s0 + 1");
  EXPECT_EQ(Attribute(1e-5).text(), "1e-05");
  EXPECT_EQ(Attribute(DType::f8e4m3).text(), "f8e4m3");
  EXPECT_EQ(Attribute(EnumWord{"column_major"}).text(), "column_major");
  EXPECT_EQ(Attribute("a \"b\"\\\n\t\x7f").text(), R"("a \"b\"\\\n\u{9}\u{7f}")");
  EXPECT_EQ(Attribute::shape({Dim::symbol("s0"), 9, 64}).text(), "[s0, 9, 64]");
  EXPECT_EQ(Attribute(AttributeList{1.0, AttributeList{}, "x"}).text(), "[1.0, [], \"x\"]");
}

TEST(Attribute, FloatsAlwaysLookLikeFloats) {
  EXPECT_EQ(float_text(1.0), "1.0");
  EXPECT_EQ(float_text(-0.0), "-0.0");
  EXPECT_EQ(float_text(0.1), "0.1");
  EXPECT_EQ(float_text(1e22), "1e+22");
  EXPECT_EQ(float_text(123456.0), "123456.0");
  EXPECT_EQ(float_text(5e-324), "5e-324");
  EXPECT_EQ(float_text(INFINITY), "inf");
  EXPECT_EQ(float_text(-INFINITY), "-inf");
  EXPECT_EQ(float_text(NAN), "nan");
  EXPECT_EQ(float_text(-NAN), "nan");
}

TEST(Attribute, GivesWhatItHoldsAndNothingElse) {
  EXPECT_TRUE(Attribute(true).boolean());
  EXPECT_EQ(Attribute(7).integer(), 7);
  EXPECT_EQ(Attribute(7).real(), 7.0);
  EXPECT_EQ(Attribute(0.5).real(), 0.5);
  EXPECT_EQ(Attribute("x").string(), "x");
  EXPECT_EQ(Attribute(EnumWord{"nearest"}).word(), "nearest");
  EXPECT_EQ(Attribute(EnumWord{"nearest"}).string(), "nearest");
  EXPECT_EQ(Attribute(DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(Attribute::shape({2, 3}).as_shape(), (Shape{2, 3}));
  EXPECT_THROW(Attribute(1).boolean(), InternalError);
  EXPECT_THROW(Attribute(0.5).integer(), InternalError);
  EXPECT_THROW(Attribute(Dim::symbol("s0")).integer(), InternalError);
  EXPECT_THROW(Attribute("x").real(), InternalError);
  EXPECT_THROW(Attribute().list(), InternalError);
  EXPECT_THROW(Attribute(AttributeList{0.5}).as_shape(), InternalError);
}

TEST(Attribute, FloatsCompareByTheirBits) {
  EXPECT_EQ(Attribute(std::nan("1")), Attribute(-std::nan("7")));
  EXPECT_NE(Attribute(0.0), Attribute(-0.0));
  EXPECT_NE(Attribute(1.0), Attribute(1));
  EXPECT_NE(Attribute("f32"), Attribute(DType::f32));
  EXPECT_NE(Attribute("f32"), Attribute(EnumWord{"f32"}));
  EXPECT_EQ(Attribute(AttributeList{NAN}), Attribute(AttributeList{NAN}));
}

static_assert(sizeof(AttributeView) == 16 && std::is_trivially_copyable_v<AttributeView>);

TEST(AttributeView, IsTheAttributeThatItLooksAtAndNoOther) {
  const Dim size = Dim::symbol("s0") + 1;
  const Shape shape{size, 9}, other_shape{size, 8}, shorter{size}, none;
  const std::string text = "up", no_text;
  const EnumWord down{"down"};
  const Attribute list(AttributeList{1.5, "x"});
  const std::optional<double> bound = 0.5;
  const std::optional<Shape> no_shape;
  const std::pair<AttributeView, Attribute> pairs[] = {
      {no_shape, Attribute()},
      {true, true},
      {1, 1},
      {std::int64_t{1} << 40, std::int64_t{1} << 40},
      {size, size},
      {1.0, 1.0},
      {0.0, 0.0},
      {-0.0, -0.0},
      {-NAN, NAN},
      {bound, 0.5},
      {text, "up"},
      {WordView{text}, EnumWord{"up"}},
      {std::string_view("onward").substr(0, 2), "on"},
      {WordView{"on"}, EnumWord{"on"}},
      {down, EnumWord{"down"}},
      {no_text, ""},
      {DType::i8, DType::i8},
      {shape, Attribute::shape(shape)},
      {other_shape, Attribute::shape(other_shape)},
      {shorter, Attribute::shape(shorter)},
      {none, Attribute::shape({})},
      {list, list},
  };
  for (const auto& [view, attribute] : pairs) {
    EXPECT_EQ(view.attribute(), attribute) << attribute.text();
    for (const auto& other : pairs) {
      const bool is_it = &other.second == &attribute;
      EXPECT_EQ(view == other.second, is_it) << attribute.text() << ", " << other.second.text();
      EXPECT_EQ(view == AttributeView::into(other.second), is_it) << attribute.text() << ", " << other.second.text();
      EXPECT_EQ(view == other.first, is_it) << attribute.text() << ", " << other.second.text();
    }
  }
}

TEST(Attributes, KeepOrderAndReplaceInPlace) {
  Attributes attributes{{"epsilon", 1e-6}, {"group_size", 128}};
  attributes.set("epsilon", 1e-5);
  attributes.set("layout", EnumWord{"row_major"});
  ASSERT_EQ(attributes.entries().size(), 3u);
  EXPECT_EQ(attributes.entries()[0].first, "epsilon");
  EXPECT_EQ(attributes.at("epsilon").real(), 1e-5);
  EXPECT_EQ(attributes.find("missing"), nullptr);
  EXPECT_THROW(attributes.at("missing"), InternalError);
}

}  // namespace weft::attribute_test
