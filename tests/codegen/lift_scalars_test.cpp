// Row programs that differ only in scalars become one function, with the same bits as before.

#include "codegen/lift_scalars.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "codegen/compile_rows.h"
#include "codegen/interpret_row_program.h"
#include "ir/parse.h"
#include "runtime/loaded_code.h"
#include "tensor/convert.h"
#include "tests/codegen/random_rows.h"
#include "tests/codegen/row_text_library.h"
#include "tests/test_context.h"

namespace weft::lift_scalars_test {

constexpr std::int64_t kRows = 3;

// The nodes of a graph as one region.
struct Made {
  std::shared_ptr<Graph> graph;
  RowRegion region;
};

Made made_of(const std::string& body, const std::string& inputs = "%x: f32[s0, 32]") {
  static const OpTable ops = make_op_table();
  Made made;
  made.graph =
      parse_graph("graph g(" + inputs + ") stage=lowered where s0 in [1, 64] {\n" + body + "return %y\n}\n", ops);
  std::vector<const Node*> nodes;
  for (const auto& node : made.graph->nodes()) nodes.push_back(node.get());
  std::string reason;
  auto region = build_row_program(nodes, reason);
  EXPECT_EQ(reason, "");
  made.region = std::move(*region);
  return made;
}

// Its name is followed by theirs. A program without common scalars keeps its own.
std::vector<std::string> names_after_lifting(std::vector<Made>& made) {
  std::vector<RowRegion*> regions;
  for (Made& one : made) regions.push_back(&one.region);
  lift_scalars(regions);
  std::vector<std::string> names;
  for (const Made& one : made) names.push_back(one.region.program.name());
  return names;
}

std::vector<std::string> names_of(const std::vector<Made>& made) {
  std::vector<std::string> names;
  for (const Made& one : made) names.push_back(one.region.program.name());
  return names;
}

std::string sum_and_product(const std::string& sum, const std::string& product) {
  return "%a = add_scalar@native(%x, value=" + sum + ")\n%y = mul_scalar@native(%a, value=" + product + ")\n";
}

TEST(LiftScalars, LoadsTheNumbersThatDifferAndNoOthers) {
  std::vector<Made> made;
  for (const char* sum : {"1e-05", "1e-06", "0.5"}) made.push_back(made_of(sum_and_product(sum, "2.0")));
  const std::vector<std::string> names = names_after_lifting(made);
  EXPECT_EQ(made[0].region.program.text(),
            "rows columns=32\n"
            "  buffer 0 in f32 row=32\n"
            "  buffer 1 in f32 row=0\n"
            "  buffer 2 out f32 row=32 over 0\n"
            "  v0 elem = load 0\n"
            "  v1 const = load 1\n"
            "  v2 elem = add v0 v1\n"
            "  v3 const = constant 2\n"
            "  v4 elem = mul v2 v3\n"
            "  store 2 v4\n");
  EXPECT_EQ(names, std::vector<std::string>(3, names[0]));
  EXPECT_EQ(made[0].region.scalars, std::vector<float>{1e-05f});
  EXPECT_EQ(made[1].region.scalars, std::vector<float>{1e-06f});
  EXPECT_EQ(made[2].region.scalars, std::vector<float>{0.5f});
}

TEST(LiftScalars, LeavesWhatIsEqualEverywhereInTheCode) {
  std::vector<Made> made;
  for (int layer = 0; layer < 3; ++layer) made.push_back(made_of(sum_and_product("1e-05", "2.0")));
  made.push_back(made_of("%y = add_scalar@native(%x, value=0.25)\n"));  // like no other one
  const std::vector<std::string> before = names_of(made);
  EXPECT_EQ(names_after_lifting(made), before);
  for (const Made& one : made) EXPECT_TRUE(one.region.scalars.empty());
}

TEST(LiftScalars, TellsZerosApartAndNoNaN) {
  std::vector<Made> zeros, nans;
  for (const char* sum : {"0.0", "-0.0"}) zeros.push_back(made_of(sum_and_product(sum, "2.0")));
  for (int i = 0; i < 2; ++i) nans.push_back(made_of(sum_and_product("nan", "2.0")));
  const std::vector<std::string> names = names_after_lifting(zeros), before = names_of(nans);
  EXPECT_EQ(names[0], names[1]);
  EXPECT_FALSE(std::signbit(zeros[0].region.scalars.at(0)));
  EXPECT_TRUE(std::signbit(zeros[1].region.scalars.at(0)));
  EXPECT_EQ(names_after_lifting(nans), before);
}

// A bound is a number of its op, not a separate one; a constant of rsqrt is no attribute; buffers are f32.
TEST(LiftScalars, LiftsWhatSchemasMark) {
  const auto pair = [](const std::string& a, const std::string& b, const std::string& inputs = "%x: f32[s0, 32]") {
    std::vector<Made> made;
    for (const std::string& body : {a, b}) made.push_back(made_of(body, inputs));
    const std::vector<std::string> names = names_after_lifting(made);
    return names[0] == names[1];
  };
  for (const char* op : {"add_scalar", "mul_scalar", "div_scalar"})
    EXPECT_TRUE(
        pair(fmt::format("%y = {}@native(%x, value=3.0)\n", op), fmt::format("%y = {}@native(%x, value=5.0)\n", op)));
  EXPECT_TRUE(pair("%y = clamp@native(%x, min=-3.0, max=1.5)\n", "%y = clamp@native(%x, min=-5.0, max=2.5)\n"));
  EXPECT_FALSE(pair("%y = clamp@native(%x, min=-3.0, max=none)\n", "%y = clamp@native(%x, min=none, max=3.0)\n"));
  EXPECT_FALSE(pair("%y = replace_nan@native(%x, value=3.0)\n", "%y = replace_nan@native(%x, value=5.0)\n"));
  EXPECT_FALSE(
      pair("%a = cast@native(%x, dtype=f64)\n%b = add_scalar@native(%a, value=0.1)\n"
           "%y = cast@native(%b, dtype=f32)\n",
           "%a = cast@native(%x, dtype=f64)\n%b = add_scalar@native(%a, value=0.2)\n"
           "%y = cast@native(%b, dtype=f32)\n"));
}

TEST(LiftScalars, LeavesProgramsThatHaveNoRoomForBuffers) {
  std::string inputs = "%x: f32[s0, 32]";
  std::string body = "%a0 = add_scalar@native(%x, value=NUMBER)\n";
  constexpr int kInputs = static_cast<int>(kMostRowBuffers) - 1;  // and an output
  for (int i = 1; i < kInputs; ++i) {
    inputs += fmt::format(", %x{}: f32[s0, 32]", i);
    body += fmt::format("%{} = add@native(%a{}, %x{})\n", i == kInputs - 1 ? "y" : fmt::format("a{}", i), i - 1, i);
  }
  const auto with = [&](const std::string& number) {
    std::string text = body;
    return made_of(text.replace(text.find("NUMBER"), 6, number), inputs);
  };
  std::vector<Made> made;
  for (const char* number : {"0.5", "0.25"}) made.push_back(with(number));
  const std::vector<std::string> before = names_of(made);
  EXPECT_EQ(names_after_lifting(made), before);
}

// A random program, and the same with each constant a little greater; as they are and lifted.
struct Pair {
  RowRegion plain[2], lifted[2];
};

Pair random_pair(std::mt19937& random, bool tame) {
  Pair pair;
  RowProgram program = random_rows(random, tame);
  for (RowValue& value : program.values) value.is_liftable = value.op == RowOp::constant && !value.is_wide;
  for (int i = 0; i < 2; ++i) {
    RowRegion& region = pair.plain[i];
    region.program = program;
    for (const RowBuffer& buffer : program.buffers)
      if (!buffer.is_output) region.inputs.push_back(nullptr);
    for (RowValue& value : region.program.values)
      if (i == 1 && value.is_liftable)
        value.number = static_cast<double>(std::nextafter(static_cast<float>(value.number), 1e30f));
    pair.lifted[i] = region;
  }
  RowRegion* const regions[] = {&pair.lifted[0], &pair.lifted[1]};
  lift_scalars(regions);
  return pair;
}

RowBuffers buffers_of(const RowRegion& region) {
  RowBuffers buffers(region.program, kRows, 31);
  for (std::size_t i = 0; i < region.scalars.size(); ++i)
    store_float(DType::f32, buffers.memory(region.inputs.size() + i).data(), 0, region.scalars[i]);
  return buffers;
}

using FindFunction = std::function<RowFunction*(const RowProgram&)>;

// The names of the lifted function and of each function that it replaces. Returns the count of lifted numbers.
int hold_against_plain(const std::vector<Pair>& pairs, const FindFunction& find) {
  int scalars = 0;
  for (const Pair& pair : pairs) {
    EXPECT_EQ(pair.lifted[0].program.name(), pair.lifted[1].program.name());
    for (int i = 0; i < 2; ++i) {
      RowBuffers wanted = buffers_of(pair.plain[i]), came = buffers_of(pair.lifted[i]);
      wanted.run(find(pair.plain[i].program));
      came.run(find(pair.lifted[i].program));
      for (std::size_t store = 0; store < pair.plain[i].program.stores.size(); ++store) {
        const std::vector<float> a = wanted.stored(store), b = came.stored(store);
        for (std::size_t k = 0; k < a.size(); ++k)
          if (std::isnan(a[k]) ? !std::isnan(b[k]) : std::memcmp(&a[k], &b[k], sizeof(float)) != 0) {
            ADD_FAILURE() << fmt::format("store {} element {}: wanted {}, came {}\n", store, k, a[k], b[k])
                          << pair.plain[i].program.text() << pair.lifted[i].program.text();
            return scalars;
          }
      }
      EXPECT_TRUE(came.is_intact());
      scalars += static_cast<int>(pair.lifted[i].scalars.size());
    }
  }
  return scalars;
}

std::vector<Pair> random_pairs(int count, bool tame, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Pair> pairs;
  while (static_cast<int>(pairs.size()) < count)
    if (Pair pair = random_pair(random, tame); !pair.lifted[0].scalars.empty()) pairs.push_back(std::move(pair));
  return pairs;
}

class LiftedCode : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  }
};

TEST_F(LiftedCode, HasTheBitsOfConstantsOnEveryInstructionSet) {
  const std::vector<Pair> pairs = random_pairs(24, false, 41);
  for (const std::string& name : vector_features_to_try()) {
    const CpuFeatures features = describe_cpu(name == "host" ? "" : name, 1).features;
    std::map<std::string, std::shared_ptr<const LoadedCode>> code;
    const auto find = [&](const RowProgram& program) {
      std::shared_ptr<const LoadedCode>& known = code[program.name()];
      std::string problem;
      if (known == nullptr) known = LoadedCode::load(compile_rows(program, features, problem));
      EXPECT_EQ(problem, "");
      return known->find<RowFunction>(program.name());
    };
    EXPECT_GT(hold_against_plain(pairs, find), 50) << name;
  }
}

TEST(LiftedText, HasTheBitsOfConstants) {
  const std::vector<Pair> pairs = random_pairs(12, false, 43);
  std::map<std::string, RowProgram> programs;
  for (const Pair& pair : pairs)
    for (const RowRegion* region : {&pair.plain[0], &pair.plain[1], &pair.lifted[0]})
      programs.emplace(region->program.name(), region->program);
  std::vector<RowProgram> all;
  for (auto& [name, program] : programs) all.push_back(program);
  const SharedLibrary library = compiled_row_text(all, 4);
  EXPECT_GT(hold_against_plain(
                pairs, [&](const RowProgram& program) { return library.find<RowFunction>(program.name().c_str()); }),
            20);
}

TEST(LiftedPrograms, AreInterpretedAsTheirConstants) {
  std::size_t compared = 0;
  for (const Pair& pair : random_pairs(40, true, 47))
    for (int i = 0; i < 2; ++i) {
      const auto wanted = interpret_row_program(pair.plain[i].program, buffers_of(pair.plain[i]).data(), kRows);
      EXPECT_EQ(interpret_row_program(pair.lifted[i].program, buffers_of(pair.lifted[i]).data(), kRows), wanted);
      for (const auto& stored : wanted) compared += stored.size();
    }
  EXPECT_GT(compared, 3000u);
}

}  // namespace weft::lift_scalars_test
