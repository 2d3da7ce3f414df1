// Functions of one's own, compiled: a guard, a size that changes, a branch on it, a graph break; then a model with all
// of them. docs/capture.md explains what this prints (capture.txt).

#include <cmath>
#include <iostream>

#include <weft/compile.h>

namespace {

using weft::Value;

Value mlp(Value x, Value up, Value down) {
  Value hidden = weft::silu(weft::linear(x, up));
  return weft::linear(hidden, down);
}

Value scaled(Value x, int times) {
  for (int i = 0; i < times; ++i) x = weft::mul_scalar(x, 0.5);
  return x;
}

Value by_length(Value x) {
  if (weft::guard(x, x.dim(0) > 16)) return weft::silu(x);
  return weft::sigmoid(x);
}

Value normalized(Value x) {
  Value largest = weft::amax(weft::amax(weft::abs(x), 1), 0);
  double scale = weft::item(largest);
  std::cout << "the largest is " << scale << std::endl;
  return scale > 1 ? weft::div(x, largest) : x;
}

struct Layer {
  Value norm, up, down;
};
void visit_members(auto&& visit, Layer& layer) { visit(layer.norm, layer.up, layer.down); }

struct Model {
  std::vector<Layer> layers;
  double epsilon = 1e-5;
};
void visit_members(auto&& visit, Model& model) { visit(model.layers, model.epsilon); }

Value forward(const Model& model, Value x) {
  for (const Layer& layer : model.layers)
    x = weft::add(x, mlp(weft::rms_norm(x, layer.norm, model.epsilon), layer.up, layer.down));
  if (weft::guard(x, x.dim(0) > 16)) x = weft::rms_norm(x, Value(), model.epsilon);
  return normalized(x);
}

// Rows of width 8: number i is factor * sin(i).
Value rows(weft::Compiler& compiler, int count, float factor = 1) {
  std::vector<float> numbers;
  for (int i = 0; i < count * 8; ++i) numbers.push_back(factor * std::sin(static_cast<float>(i)));
  return compiler.value({count, 8}, numbers);
}

void title(const char* text) { std::cout << "\n" << text << std::endl; }

template <class Compiled>
void report(const Compiled& compiled) {
  const weft::CaptureCounts& counts = compiled.captured().counts();
  std::cout << counts.calls << " calls, compiled " << counts.compiled << " times" << std::endl;
}

void first_function(weft::Compiler& compiler) {
  title("a function");
  Value x = rows(compiler, 4), up = rows(compiler, 16), down = weft::reshape(rows(compiler, 16), {8, 16});
  auto fast = compiler.compile(mlp, {.name = "mlp"});
  std::cout << weft::to_text(mlp(x, up, down)) << std::endl;
  std::cout << weft::to_text(fast(x, up, down)) << std::endl;
  fast(x, up, down);
  report(fast);
}

void guards(weft::Compiler& compiler) {
  title("guards");
  auto fast = compiler.compile(scaled, {.name = "scaled"});
  Value x = rows(compiler, 4);
  fast(x, 1);
  fast(x, 2);
  fast(x, 1);
  report(fast);
}

void sizes_that_change(weft::Compiler& compiler) {
  title("sizes that change");
  auto fast = compiler.compile(by_length, {.name = "by_length"});
  fast.mark_dynamic(0, 0, {"tokens", 1, 64});
  fast.prepare(rows(compiler, 20));
  for (int count = 1; count <= 64; ++count) fast(rows(compiler, count));
  report(fast);
  try {
    fast(rows(compiler, 65));
  } catch (const weft::UserError& error) {
    std::cout << error.what() << std::endl;
  }
}

void graph_breaks(weft::Compiler& compiler) {
  title("graph breaks");
  auto fast = compiler.compile(normalized, {.name = "normalized"});
  fast(rows(compiler, 4, 0.5F));
  fast(rows(compiler, 4, 3.0F));
  fast(rows(compiler, 4, 5.0F));
  report(fast);
  auto whole = compiler.compile(normalized, {.name = "whole", .fullgraph = true});
  try {
    whole(rows(compiler, 4));
  } catch (const weft::UserError& error) {
    std::cout << error.what() << std::endl;
  }
}

Model two_layers(weft::Compiler& compiler) {
  Model model;
  for (float factor : {0.5F, 0.25F})
    model.layers.push_back({.norm = compiler.value({8}, std::vector<float>(8, 1)),
                            .up = rows(compiler, 16, factor),
                            .down = weft::reshape(rows(compiler, 16, factor), {8, 16})});
  return model;
}

void own_model(weft::Compiler& compiler) {
  title("a model");
  Model model = two_layers(compiler);
  auto fast = compiler.compile(forward, {.name = "forward"});
  fast.mark_dynamic(1, 0, {"tokens", 1, 64});
  for (int count : {4, 20, 7, 32}) {
    Value x = rows(compiler, count);
    std::vector<double> wanted = weft::numbers(forward(model, x));
    bool is_same = weft::numbers(fast(model, x)) == wanted;
    std::cout << count << " rows, " << (is_same ? "the same bits" : "other numbers") << std::endl;
  }
  report(fast);
  model.epsilon = 1e-3;
  fast(model, rows(compiler, 4));
  report(fast);
}

}  // namespace

int main() {
  weft::Options options;
  options.logs = "+guards,recompiles,graph_breaks";
  options.disable_compile_cache = true;
  weft::Compiler compiler(options);
  first_function(compiler);
  guards(compiler);
  sizes_that_change(compiler);
  graph_breaks(compiler);
  own_model(compiler);
}
