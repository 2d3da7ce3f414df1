// The key of Plans contains all that the compiler reads of a graph: every field of every node, value and input changes
// it, in graphs of models and of texts, also if the changed graph is not legal. Fields for people do not change it. The
// fields are destructured by name, so a new field does not compile here until it is assigned to one of the two sets.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "base/files.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "compiler/store/plan_store.h"
#include "engine/compile/model_compilation.h"
#include "engine/open_checkpoint.h"
#include "ir/parse.h"
#include "tests/cache/cache_case.h"
#include "tests/engine/model_forms.h"
#include "tests/engine/tiny_model.h"
#include "tests/field_changes.h"
#include "tests/small_layer.h"

namespace weft::plan_key_fields_test {

// The members of a Graph, in their order. Some are private, so this file cannot name them; the size reveals a new one,
// unless it fits into padding.
struct FieldsOfGraph {
  std::string name;
  DefinitionKind kind;
  Stage stage;
  DeviceId device;
  Bounds bounds;
  std::vector<std::shared_ptr<Graph>> pieces;
  std::vector<std::unique_ptr<GraphValue>> inputs;
  NodeList nodes;
  std::unique_ptr<Node> result;
};
static_assert(sizeof(Graph) == sizeof(FieldsOfGraph), "a new field of Graph is to be changed below");

class GraphFields {
 public:
  GraphFields(Graph& graph, FieldChanges& changes, FieldChanges& unread)
      : graph_(graph), changes_(changes), unread_(unread) {
    for (const auto& input : graph.inputs()) values_.push_back(input.get());
    for (const auto& node : graph.nodes())
      for (const auto& result : node->results) values_.push_back(result.get());
  }

  void change_all() {
    unread_.text("graph.name", graph_.name);
    changes_.choice("graph.kind", graph_.kind, 3);
    changes_.choice("graph.stage", graph_.stage, 4);
    change_device("graph.device", graph_.device);
    change_bounds();
    changes_.list("graph.pieces", graph_.pieces, std::make_shared<Graph>());
    for (const auto& input : graph_.inputs()) change_value("input", *input, true);
    GraphValue* added = graph_.add_input(Meta::batch());
    changes_.look("one more input");
    graph_.erase_input(added);
    for (const auto& node : graph_.nodes()) change_node(*node);
    change_order();
    change_operands("result", *graph_.result_node());
    if (!graph_.inputs().empty() && !graph_.results().empty())
      changes_.set("result.results_in", graph_.result_node()->results_in, {0});
  }

 private:
  void change_bounds() {
    for (auto& [symbol, interval] : graph_.bounds) {
      auto& [lo, hi] = interval;
      changes_.number("bounds.lo", lo);
      changes_.set("bounds.hi", hi, hi - 1);
      Bounds other = graph_.bounds;
      other["another"] = other.at(symbol);
      changes_.set("one more bound", graph_.bounds, other);
      other.erase(symbol);
      changes_.set("bound of another symbol", graph_.bounds, other);
    }
  }
  void change_device(const std::string& of, DeviceId& device) {
    auto& [type, index] = device;
    changes_.choice(of + ".type", type, 3);
    if (type != DeviceType::cpu) changes_.number(of + ".index", index);
  }

  void change_meta(const std::string& of, Meta& meta) {
    auto& [kind, dtype, shape, strides, packed, kv, device] = meta;
    changes_.choice(of + ".kind", kind, 5);
    change_device(of + ".device", device);
    if (kind == MetaKind::tensor) {
      changes_.choice(of + ".dtype", dtype, kDTypeCount);
      changes_.shape(of + ".shape", shape);
      changes_.text(of + ".packed", packed);
      if (!shape.empty() && strides.empty()) {
        Shape other = contiguous_strides(shape);
        other.back() = other.back() + 1;
        changes_.set(of + ".strides", strides, other);
      }
      if (!strides.empty()) changes_.shape(of + ".strides", strides);
    }
    if (kind == MetaKind::kv) {
      auto& [number, block, heads, head_dim, keys_are_values, state_rows] = kv;
      changes_.choice(of + ".kv.dtype", number, kDTypeCount);
      for (std::int64_t* size : {&block, &heads, &head_dim, &state_rows}) changes_.number(of + ".kv", *size);
      changes_.flag(of + ".kv.keys_are_values", keys_are_values);
    }
  }

  // Its producer and its users are fields of these.
  void change_value(const std::string& of, GraphValue& value, bool is_input) {
    auto& [producer, index, meta, name, uses, donated, param, key, overwrites] = value;
    change_meta(of + ".meta", meta);
    unread_.text(of + ".name", name);
    if (!is_input) return;
    changes_.flag(of + ".donated", donated);
    changes_.flag(of + ".param", param);
    changes_.flag(of + ".overwrites", overwrites);
    unread_.text(of + ".key", key);
  }

  // `op` is part of the name, and `position` is that of the list.
  void change_node(Node& node) {
    auto& [kind, name, op, operands, attributes, results, origin, maybe_inplace, provider, writes, results_in, position,
           line, site] = node;
    changes_.set("node.kind", kind, NodeKind::call);
    changes_.text("node.name", name);
    change_operands("node", node);
    change_attributes(node.name, attributes);
    for (const auto& result : results) change_value("result", *result, false);
    results.push_back(std::make_unique<GraphValue>());
    changes_.look("one more result");
    results.pop_back();
    change_origin(origin);
    changes_.flag("node.maybe_inplace", maybe_inplace);
    changes_.text("node.provider", provider);
    if (!operands.empty())
      changes_.set("node.writes", writes, writes.empty() ? std::vector<int>{0} : std::vector<int>());
    unread_.number("node.line", line);
    unread_.set("node.site", site, CallSite::current());
  }

  // The layer of the origin is in the key, because Plans keep it for people.
  void change_origin(Origin& origin) {
    Origin other = origin;
    other.emplace_back("part", "mlp");
    unread_.set("node.origin", origin, other);
    other = {{"layer", "another"}};
    changes_.set("node.origin, layer", origin, other);
  }

  void change_attributes(const std::string& of, Attributes& attributes) {
    const NamedAttributes given = attributes.entries();
    for (const auto& [name, value] : given)
      for (const Attribute& other : other_attributes(value)) {
        Attributes changed = attributes;
        changed.set(name, other);
        changes_.set(of + "." + name + "=" + other.text(), attributes, changed);
      }
    Attributes more = attributes;
    more.set("another", true);
    changes_.set(of + " with one more attribute", attributes, more);
  }

  void change_operands(const std::string& of, Node& node) {
    std::vector<GraphValue*>& operands = node.operands;
    for (GraphValue*& operand : operands) {
      const auto at = std::find(values_.begin(), values_.end(), operand);
      GraphValue* other = at == values_.end() || at + 1 == values_.end() ? values_.front() : *(at + 1);
      if (other != operand) changes_.set(of + ".operand", operand, other);
      if (operand != nullptr && node.kind != NodeKind::result) changes_.set(of + ".operand, absent", operand, nullptr);
    }
    // An absent value at the end is the same as none.
    if (!operands.empty() && operands.back() != nullptr) changes_.list(of + ".operands", operands, values_.front());
  }

  void change_order() {
    const NodeList& nodes = graph_.nodes();
    if (nodes.size() < 2) return;
    for (auto node = nodes.begin(); std::next(node) != nodes.end(); ++node) {
      Node *first = node->get(), *second = std::next(node)->get();
      graph_.move_before(second, first);
      changes_.look("node order");
      graph_.move_before(first, second);
    }
  }

  Graph& graph_;
  FieldChanges& changes_;
  FieldChanges& unread_;
  std::vector<GraphValue*> values_;
};

class PlanKeyFields : public ::testing::Test {
 protected:
  std::shared_ptr<Context> open(const Options& options) {
    auto context = make_context(options);
    context->cache = files_.open();
    return context;
  }
  // The factor of the key that is the graph's: options, build and device are in others.
  static std::string key_of(const Graph& graph, const Context& context) {
    const TokenRange range{1, 8};
    const CacheKey key = *plans_key(graph, context, std::span(&range, 1), {});
    for (const CacheFactor& factor : key.factors())
      if (factor.name == "graph") return factor.value;
    ADD_FAILURE() << "the key has no factor of its graph";
    return "";
  }
  int change_fields(const Graph& of, const Context& context) {
    const std::shared_ptr<Graph> graph = of.clone();
    const std::string key = key_of(of, context);
    EXPECT_EQ(key_of(*graph, context), key);
    FieldChanges changes([&](const std::string& what) { EXPECT_NE(key_of(*graph, context), key) << what; });
    FieldChanges unread([&](const std::string& what) { EXPECT_EQ(key_of(*graph, context), key) << what; });
    GraphFields(*graph, changes, unread).change_all();
    EXPECT_EQ(key_of(*graph, context), key) << "a field was not put back";
    return changes.count();
  }

  TemporaryFolder folder_;
  CacheCase files_;
  const ModelRegistry models_ = make_model_registry();
};

TEST_F(PlanKeyFields, OfModelsAreInTheKey) {
  int tried = 0;
  for (const ModelForm& form : sample_forms(folder_, {{"num_hidden_layers", 1}})) {
    SCOPED_TRACE(form.name());
    const auto context = open(form.options);
    const ModelCompilation model(context, open_checkpoint(form.path, form.options, models_), models_);
    tried += change_fields(*model.phases()[0].forward.traced, *context) +
             change_fields(*model.phases()[0].head.traced, *context);
    if (HasFailure()) break;
  }
  std::cout << "count: " << tried << " fields\n";
  EXPECT_GT(tried, 10'000);
}

// For all stages except the last, which is after the key.
TEST_F(PlanKeyFields, OfTextsAreInTheKey) {
  const auto context = open({});
  int graphs = 0, tried = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(WEFT_SOURCE_ROOT) + "/tests/passes/cases")) {
    if (entry.path().extension() != ".graph") continue;
    SCOPED_TRACE(entry.path().string());
    for (const auto& graph : parse_graphs(read_file(entry.path(), 1 << 20), context->ops, entry.path().string())) {
      if (!graph->pieces.empty()) continue;
      tried += change_fields(*graph, *context);
      ++graphs;
    }
    if (HasFailure()) break;
  }
  std::cout << "count: " << tried << " fields of " << graphs << " graphs\n";
  EXPECT_GT(graphs, 100);
}

TEST_F(PlanKeyFields, NoTwoFormsOfAModelAreOneGraph) {
  std::map<std::string, std::map<std::string, std::string>> forms;  // by architecture and key
  const auto add = [&](const ModelForm& form) {
    const auto context = open(form.options);
    const ModelCompilation model(context, open_checkpoint(form.path, form.options, models_), models_);
    const auto [found, is_new] =
        forms[form.architecture].emplace(key_of(*model.phases()[0].forward.traced, *context), form.form);
    EXPECT_TRUE(is_new) << form.name() << " and " << found->second;
  };
  for (const ModelForm& form : model_forms(folder_, nlohmann::json::object())) {
    add(form);
    if (form.form != "f32") continue;
    const ArchitectureFacts& facts = models_.find(form.architecture, "test").facts;
    const bool attends = !facts.halves || !facts.halves->words.empty();  // and has a feed-forward
    nlohmann::json one_key_head{{"num_key_value_heads", 1}};
    for (const SwitchKey& one : facts.switches)
      if (one.field == &ModelConfig::has_one_key_head) one_key_head[std::string(one.folder)] = true;
    for (const nlohmann::json& change :
         {nlohmann::json{{"num_hidden_layers", 3}},
          {{facts.norm.epsilon, 1e-4}},
          {{"vocab_size", 512}},
          {{"hidden_size", 128}},
          {{"intermediate_size", 128}, {"moe_intermediate_size", 128}, {facts.feed_forward_width, 128}},
          one_key_head,
          {{"head_dim", 64}}}) {
      const ModelDefinition& model = models_.find(form.architecture, "test");
      nlohmann::json changed = nlohmann::json::parse(model.sample_config);
      changed.update(change);
      const bool is_of_heads = change.contains("num_key_value_heads") || change.contains("head_dim");
      if (!attends && (is_of_heads || change.contains("intermediate_size"))) continue;
      if (changed == nlohmann::json::parse(model.sample_config) || (model.facts.has_latents && is_of_heads)) continue;
      add({form.architecture, change.dump(), write_config_only(folder_, form.architecture, change), form.options});
    }
    if (!attends) continue;
    for (const char* pages : {"bf16", "f16"}) {  // its own are of f32
      ModelForm other = form;
      other.form += std::string(" with pages of ") + pages;
      other.options.kv_cache_dtype = pages;
      add(other);
    }
  }
  EXPECT_GE(forms.size(), 4u);
}

}  // namespace weft::plan_key_fields_test
