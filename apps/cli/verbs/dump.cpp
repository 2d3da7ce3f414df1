#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include "apps/cli/dump_code.h"
#include "apps/cli/graph_commands.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "builtin/models.h"
#include "compiler/piece_graph.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "options/effective_options.h"
#include "options/options_text.h"

namespace weft {
namespace {

struct DumpArguments {
  ModelArgument source;  // of graph and plan: a model, or graph text in a file that ends in .graph
  std::string stage = "split";
  std::string graph;  // forward or head; "" for both
  std::string piece;  // "" for the whole graph
  bool json = false;
};

bool is_graph_text(const std::string& path) { return std::filesystem::path(path).extension() == ".graph"; }

int dump_ops(const DumpArguments& arguments, VerbCall& call) {
  Json list = Json::array();
  const auto context = open_context(call);
  for (const auto& [name, op] : context->ops.all()) {
    const char* kind = op.is_view ? "view" : op.is_primitive() ? "primitive" : "composite";
    Json donates = Json::array();
    for (const Donation& donation : op.donates)
      donates.push_back(op.schema.parameters[static_cast<std::size_t>(donation.argument)].name);
    list.push_back({{"name", name},
                    {"schema", op.schema.text()},
                    {"kind", kind},
                    {"donates", donates},
                    {"allow_inplace", op.allow_inplace},
                    {"samples", op.samples.size()}});
    if (!arguments.json) call.out << fmt::format("{:<10} {}\n", kind, op.schema.text());
  }
  if (arguments.json) call.out << json_text(list, 2) << "\n";
  return 0;
}

int dump_kernels(const DumpArguments& arguments, VerbCall& call) {
  const auto context = open_context(call);
  Json list = Json::array();
  for (const std::string& op : context->kernels.ops()) {
    for (const std::string& provider : context->kernels.providers(op)) {
      const Kernel* kernel = context->kernels.find(op, provider);
      const std::string refusal = kernel == nullptr ? context->kernels.refusal(op, provider) : "";
      Json row{{"op", op}, {"provider", provider}, {"supported", kernel != nullptr}};
      row["refusal"] = kernel == nullptr ? Json(refusal) : Json(nullptr);
      row["writes"] = kernel == nullptr ? Json::array() : Json(kernel->writes);
      row["batch_invariant"] = kernel == nullptr ? Json(nullptr) : Json(kernel->batch_invariant);
      row["note"] = kernel == nullptr ? "" : kernel->note;
      list.push_back(row);
      if (!arguments.json)
        call.out << fmt::format("{:<45} {:<10} {}\n", op, provider,
                                kernel == nullptr ? "refused: " + refusal : kernel->note);
    }
  }
  if (arguments.json) call.out << json_text(list, 2) << "\n";
  return 0;
}

int dump_patterns(const DumpArguments& arguments, VerbCall& call) {
  const auto context = open_context(call);
  Json list = Json::array();
  for (const FusionPattern& entry : context->patterns) {
    const std::string text = display(entry.pattern);
    list.push_back({{"pattern", entry.pattern.name}, {"fusion", entry.fusion}, {"text", text}});
    if (!arguments.json) call.out << (list.size() == 1 ? "" : "\n") << "# " << entry.fusion << "\n" << text;
  }
  if (arguments.json) call.out << json_text(list, 2) << "\n";
  return 0;
}

int dump_options(const DumpArguments& arguments, VerbCall& call) {
  call.out << (arguments.json ? options_json(call.options) + "\n" : options_text(call.options));
  return 0;
}

// The graphs of a model or file, as they are before any pass.
std::vector<std::shared_ptr<Graph>> source_graphs(const DumpArguments& arguments, VerbCall& call,
                                                  const std::shared_ptr<Context>& context) {
  std::vector<std::shared_ptr<Graph>> graphs;
  if (is_graph_text(arguments.source.name)) {
    graphs = read_graphs(arguments.source.name, context->ops);
    for (const auto& graph : graphs) verify_text(*graph, context->ops, arguments.source.name);
    std::erase_if(graphs,
                  [&](const auto& graph) { return !arguments.graph.empty() && graph->name != arguments.graph; });
    USER_CHECK(!graphs.empty(), "[--graph] {} holds no graph {}", arguments.source.name, quote(arguments.graph));
    return graphs;
  }
  const ModelCompilation model(context, arguments.source.open(call), make_model_registry());
  std::vector<std::string> names;
  for (const ModelGraph* graph : model.graphs()) {
    names.push_back(graph->traced->name);
    if (arguments.graph.empty() || arguments.graph == names.back()) graphs.push_back(graph->traced->clone());
  }
  USER_CHECK(!graphs.empty(), "[--graph] must be one of {}, but is {}", fmt::join(names, ", "), quote(arguments.graph));
  return graphs;
}

// The pieces that --piece names, each as a graph of its own.
std::vector<std::shared_ptr<Graph>> named_pieces(const std::vector<std::shared_ptr<Graph>>& graphs,
                                                 const DumpArguments& arguments, const Context& context) {
  std::vector<CompileRecord> records;
  std::vector<std::shared_ptr<Graph>> pieces;
  for (const auto& graph : graphs) {
    if (graph->stage != Stage::split) run_passes_to(*graph, context, Stage::split);
    records.push_back({.graph = graph->name, .split = graph});
    for (const auto& piece : graph->pieces)
      if (const Node* call = first_call(*graph, piece->name);
          call != nullptr && names_piece(arguments.piece, graph->name, piece->name))
        pieces.push_back(standalone_piece(*graph, *call));
  }
  check_piece_names("--piece", {arguments.piece}, records);
  return pieces;
}

int dump_graph(const DumpArguments& arguments, VerbCall& call) {
  const std::optional<Stage> stage = stage_from_text(arguments.stage);
  USER_CHECK(stage.has_value(), "[--stage] must be traced, pure, lowered or split, but is {}", quote(arguments.stage));
  compile_anyway(call.options);
  const auto context = open_context(call);
  Json list = Json::array();
  bool first = true;
  std::vector<std::shared_ptr<Graph>> graphs = source_graphs(arguments, call, context);
  const bool is_piece = !arguments.piece.empty();
  if (is_piece) graphs = named_pieces(graphs, arguments, *context);
  for (const auto& graph : graphs) {
    if (!is_piece && graph->stage != *stage) run_passes_to(*graph, *context, *stage);
    const std::string text = display(*graph);
    list.push_back({{"name", graph->name}, {"stage", stage_text(graph->stage)}, {"text", text}});
    if (!arguments.json) call.out << (first ? "" : "\n") << text;
    first = false;
  }
  if (arguments.json) call.out << json_text(list, 2) << "\n";
  return 0;
}

int dump_plan(const DumpArguments& arguments, VerbCall& call) {
  compile_anyway(call.options);
  const auto context = open_context(call);
  Json list = Json::array();
  bool first = true;
  for (const auto& graph : source_graphs(arguments, call, context)) {
    const std::shared_ptr<const Plan> plan = compile_graph(*graph, *context);
    USER_CHECK(plan != nullptr, "[dump] there is no plan: --compile-to={} stops before", context->options.compile_to);
    list.push_back({{"name", plan->name},
                    {"steps", plan->steps.size()},
                    {"slots", plan->slots.size()},
                    {"arena_bytes", plan->arena_bytes},
                    {"unshared_bytes", plan->unshared_bytes},
                    {"text", plan_text(*plan)}});
    if (!arguments.json) call.out << (first ? "" : "\n") << plan_text(*plan);
    first = false;
  }
  if (arguments.json) call.out << json_text(list, 2) << "\n";
  return 0;
}

int dump_code(const DumpArguments& arguments, VerbCall& call) {
  compile_anyway(call.options);
  const auto context = open_context(call);
  const auto graphs = source_graphs(arguments, call, context);
  for (const auto& graph : graphs)
    if (graph->stage != Stage::split) run_passes_to(*graph, *context, Stage::split);
  print_code(graphs, *context, arguments.json, call.out);
  return 0;
}

using DumpCommand = int (*)(const DumpArguments&, VerbCall&);

}  // namespace
}  // namespace weft

VERB(dump) {
  verbs.add("dump",
            {"Print tables of the program, and what it compiles.", [](Flags& flags, VerbCall& call) -> VerbBody {
               auto arguments = std::make_shared<DumpArguments>();
               auto chosen = std::make_shared<DumpCommand>(nullptr);
               const auto add = [&](const char* name, const char* summary, DumpCommand command) -> Flags& {
                 Flags& verb = flags.verb(name, summary, [chosen, command] { *chosen = command; });
                 verb.flag("--json", arguments->json, "Print JSON.");
                 return verb;
               };
               add("ops", "Every op with its schema.", dump_ops);
               add("kernels", "Every kernel, and why it is refused here.", dump_kernels);
               add("patterns", "Every pattern, as text that reads back.", dump_patterns);
               add("options", "Every option with its value.", dump_options);
               Flags& graph = add("graph", "The graphs of a model, or of a .graph file, at a stage.", dump_graph);
               graph.option("--stage", arguments->stage, "traced, pure, lowered or split.", {.shows_default = true});
               graph.option("--piece", arguments->piece, "Only this piece, as a graph of its own: p2 or forward.p2.",
                            {.excludes = {"--stage"}});
               Flags& plan = add("plan", "The Plans of a model, or of a .graph file.", dump_plan);
               Flags& code = add("code", "The functions generated for a model, or for a .graph file.", dump_code);
               for (Flags* verb : {&graph, &plan, &code}) {
                 arguments->source.declare(*verb);
                 verb->option("--graph", arguments->graph, "Only this graph: forward or head.");
               }
               return [arguments, chosen, &call] { return (*chosen)(*arguments, call); };
             }});
}
