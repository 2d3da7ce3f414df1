// What a compiled function costs beside its kernels, on tensors of one element.
//
//   capture_bench [--benchmark_filter=.*] [--benchmark_repetitions=5]
//
//   guards      whether the arguments pass: eight tensors of two dims, one of which is a symbol in all of them
//   dispatch    the whole call of a function of eight such tensors that does nothing and gives nothing: guards, and
//               finding what to run
//   call        the same with one kernel that does nothing; Values in, Values out
//   program     what that call runs, from tensors to tensors; the rest of it beside `dispatch` is making its result
//   matched     one op of a function with graph breaks, held against what was recorded: of calls of 100 ops whose
//               results nobody wants, so that nothing else runs
//   trace       the forward of a Llama of 32 layers to a graph, as models are traced
//   record      the same function as weft::compile traces one, and the graph of what it did
//
// On a shared machine take the best of several repetitions.

#include <benchmark/benchmark.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "capture/compile.h"
#include "compiler/run/eager.h"
#include "compiler/run/graph_program.h"
#include "ir/reading.h"
#include "ir/trace.h"
#include "ops/add.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/per_token_group_quant_fp8.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"

namespace weft {
namespace {

struct Bench {
  std::shared_ptr<Context> context;
  std::unique_ptr<EagerEvaluator> eager;

  Bench() {
    Options options;
    options.threads = 1;
    options.backend = "eager";
    context = make_context(std::move(options));
    context->kernels.add({.op = "add", .provider = "idle", .run = [](const KernelCall&) {}});
    context->priorities.set("add", {"idle"});
    eager = std::make_unique<EagerEvaluator>(*context, TokenRange{1, 512});
  }
  Value row() const { return eager->value(Tensor::empty(Meta::tensor(DType::f32, {1, 1}))); }
};

void guards(benchmark::State& state) {
  const Bench bench;
  Values values(8, bench.row());
  std::vector<Leaf> leaves;
  LeafReader reader(leaves);
  GuardList guards;
  for (std::size_t i = 0; i < values.size(); ++i) {
    reader.value(values[i]);
    guards.add_leaf(i, leaves[i]);
    guards.add_symbol(i, 0, "s0", {1, 512});
    guards.add_size(i, 1, 1);
  }
  for (auto _ : state) benchmark::DoNotOptimize(guards.hold(leaves));
}
BENCHMARK(guards);

void dispatch(benchmark::State& state) {
  const Bench bench;
  auto compiled = compile(bench.context, [](Value, Value, Value, Value, Value, Value, Value, Value) {});
  for (int i = 0; i < 8; ++i) compiled.mark_dynamic(i, 0, {"s0", 1, 512});
  const std::vector<Value> v(8, bench.row());
  for (auto _ : state) compiled(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}
BENCHMARK(dispatch);

void call(benchmark::State& state) {
  const Bench bench;
  auto compiled = compile(bench.context, [](Value a, Value b, Value, Value, Value, Value, Value, Value) {
    return add(std::move(a), std::move(b));
  });
  compiled.mark_dynamic(0, 0, {"s0", 1, 512});
  compiled.mark_dynamic(1, 0, {"s0", 1, 512});
  std::vector<Value> v;
  for (int i = 0; i < 8; ++i) v.push_back(bench.row());
  for (auto _ : state) benchmark::DoNotOptimize(compiled(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]));
}
BENCHMARK(call);

void program(benchmark::State& state) {
  const Bench bench;
  auto graph = std::make_shared<Graph>("sum");
  graph->bounds["s0"] = {1, 512};
  Trace trace(bench.context->ops, *graph);
  const Meta meta = Meta::tensor(DType::f32, {Dim::symbol("s0"), 1});
  trace.finish({add(trace.input("a", meta), trace.input("b", meta))});
  GraphProgram program(*bench.context, graph);
  const std::vector<Tensor> tensors{bench.row().tensor(), bench.row().tensor()};
  for (auto _ : state) benchmark::DoNotOptimize(program.run(tensors));
}
BENCHMARK(program);

template <class Call>
void matched(benchmark::State& state, Call call) {
  const Bench bench;
  constexpr int kOps = 100;
  auto compiled = compile(bench.context, [call](Value x) {
    benchmark::DoNotOptimize(item(x));
    for (int i = 0; i < kOps; ++i) benchmark::DoNotOptimize(call(x));
    return x;
  });
  const Value x = bench.row();
  for (auto _ : state) benchmark::DoNotOptimize(compiled(x));
  const auto kPerOp = benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert;
  state.counters["op"] = benchmark::Counter(kOps, kPerOp);
}
BENCHMARK_CAPTURE(matched, add, [](const Value& x) { return add(x, x); });
BENCHMARK_CAPTURE(matched, rms_norm, [](const Value& x) { return rms_norm(x, {}, 1e-5); });
// A list for an attribute; three attributes, one of them a text, and two results.
BENCHMARK_CAPTURE(matched, reshape, [](const Value& x) { return reshape(x, {1, 1}); });
BENCHMARK_CAPTURE(matched, fused_add_rms_norm, [](const Value& x) { return fused_add_rms_norm(x, x, {}, 1e-5); });
// The most of them that an op has: 11 attributes, two of them texts, and two results.
BENCHMARK_CAPTURE(matched, per_token_group_quant_fp8,
                  [](const Value& x) { return per_token_group_quant_fp8(x, {}, 1); });

constexpr const char* kLlama = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
  "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false,
  "vocab_size": 128256, "eos_token_id": 128001, "torch_dtype": "bfloat16"
})";

// Model code over whatever home gives the values: everything that the model is given is asked of `make` by its name.
class LlamaBuilder : public Builder {
 public:
  using Make = std::function<Value(const std::string& name, const Meta& meta)>;
  LlamaBuilder(const ModelFacts& facts, const ModelDefinition& model, const std::map<std::string, Meta>& tensors,
               Make make)
      : Builder(facts), model_(model), tensors_(tensors), make_(std::move(make)) {}

  Value input(const std::string& name, const Meta& meta) override { return make_(name, meta); }
  Value donated_input(const std::string& name, const Meta& meta) override { return make_(name, meta); }
  Value weight(const std::string& name, const std::vector<std::string>& keys, WeightRole) override {
    Meta meta = tensors_.at(keys[0]);
    for (std::size_t i = 1; i < keys.size(); ++i) meta.shape[0] = meta.shape[0] + tensors_.at(keys[i]).shape[0];
    return make_(name, meta);
  }
  Value rotary_table() override {
    return make_("cos_sin_cache",
                 Meta::tensor(DType::f32, {facts.config.context_length, facts.config.rope.rotary_dim}));
  }
  bool can_merge(const std::vector<std::string>&) override { return true; }
  const QuantizationConfig* quantization(const std::vector<std::string>&) const override { return nullptr; }
  void enter_layer(int) override {}
  std::string key(const std::string& name, int layer) const override {
    return model_.key(name, CheckpointFormat::hugging_face, layer);
  }
  WeightRole vector_role(const std::string&) const override { return WeightRole::vector; }

 private:
  const ModelDefinition& model_;
  const std::map<std::string, Meta>& tensors_;
  Make make_;
};

struct Llama {
  const ModelRegistry models = make_model_registry();
  const ModelDefinition& model = models.find("llama", "the bench");
  ModelFacts facts;
  std::map<std::string, Meta> tensors;

  Llama() {
    facts.config = model_config_from_json(kLlama, "the bench", {});
    facts.dtype = DType::bf16;
    facts.kv = {.dtype = DType::bf16, .block = 16, .heads = 8, .head_dim = 128};
    for (const NamedMeta& tensor : model.tensors(facts.config)) tensors[tensor.name] = tensor.meta;
  }
  Values forward(LlamaBuilder::Make make) const {
    LlamaBuilder builder(facts, model, tensors, std::move(make));
    return model.forward(builder);
  }
  void trace(const OpTable& ops, Graph& graph) const {
    Trace trace(ops, graph);
    trace.finish(forward([&](const std::string& name, const Meta& meta) { return trace.input(name, meta); }));
  }
};

void trace(benchmark::State& state) {
  const Bench bench;
  const Llama llama;
  for (auto _ : state) {
    Graph graph("llama");
    llama.trace(bench.context->ops, graph);
    state.counters["nodes"] = static_cast<double>(graph.nodes().size());
  }
}
BENCHMARK(trace)->Unit(benchmark::kMillisecond);

void record(benchmark::State& state) {
  const Bench bench;
  const Llama llama;
  Graph example("llama");
  llama.trace(bench.context->ops, example);
  std::vector<Meta> metas;
  std::vector<std::string> names;
  for (const auto& input : example.inputs()) {
    metas.push_back(input->meta);
    names.push_back(input->name);
  }
  for (auto _ : state) {
    Recorder recorder(*bench.context, "llama", "llama", true, 1);
    RecordedTree tree{.inputs = recorder.inputs(metas, names), .bounds = {{"s0", {1, 512}}}};
    const auto running = recorder.begin(tree, {}, {{"s0", 16}}, Recorder::Purpose::trace);
    std::size_t next = 0;
    const Values results = llama.forward([&](const std::string&, const Meta&) { return tree.inputs[next++]; });
    recorder.finish(results);
    const Segment& segment = *tree.starts.front();
    benchmark::DoNotOptimize(
        graph_of(segment, recorder.values(), segment.ends_in, tree.bounds, "llama", bench.context->ops));
  }
}
BENCHMARK(record)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();
