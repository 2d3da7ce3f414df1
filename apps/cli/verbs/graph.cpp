#include <algorithm>

#include "apps/cli/graph_commands.h"
#include "apps/cli/pattern_lines.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "compiler/run/graph_program.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "options/effective_options.h"
#include "passes/pattern_pass.h"

namespace weft {
namespace {

struct GraphArguments {
  std::string file;
  bool canonical = false;
  std::string to = "split";
  std::string passes;
  std::string pattern;
  std::string in;
  std::string out;
  ModelArgument model;
  bool json = false;
};

// The stage of a graph; none for a pattern.
Json stage_of(const Graph& graph) { return stage_text(graph.stage); }
Json stage_of(const Pattern&) { return nullptr; }

int print_graphs(const GraphArguments& arguments, VerbCall& call) {
  const auto context = open_context(call);
  const OpTable& ops = context->ops;
  Json list = Json::array();
  bool first = true;
  auto print = [&](const auto& definition) {
    const std::string text = arguments.canonical ? canonical(*definition) : display(*definition);
    list.push_back({{"name", definition->name}, {"stage", stage_of(*definition)}, {"text", text}});
    if (!arguments.json) call.out << (first ? "" : "\n") << text;
    first = false;
  };
  for (const Definition& definition : read_definitions(arguments.file, ops)) std::visit(print, definition);
  if (arguments.json) call.out << json_text(list) << "\n";
  return 0;
}

int verify_graphs(const GraphArguments& arguments, VerbCall& call) {
  const auto context = open_context(call);
  const OpTable& ops = context->ops;
  Json list = Json::array();
  bool all_legal = true;
  auto report = [&](const auto& definition, const std::optional<std::string>& breach, const std::string& verdict) {
    all_legal = all_legal && !breach;
    list.push_back({{"name", definition.name},
                    {"stage", stage_of(definition)},
                    {"legal", !breach},
                    {"breach", breach ? Json(*breach) : Json(nullptr)}});
    if (!arguments.json && !breach) call.out << definition.name << ": " << verdict << "\n";
    if (breach) call.err << fmt::format("weft: [{}] {}: {}\n", arguments.file, definition.name, *breach);
  };
  for (const Definition& definition : read_definitions(arguments.file, ops)) {
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&definition)) {
      report(**graph, find_breach(**graph, ops), fmt::format("legal at stage {}", stage_text((*graph)->stage)));
    } else {
      const Pattern& pattern = *std::get<std::shared_ptr<Pattern>>(definition);
      report(pattern, find_breach(pattern), "a legal pattern");
    }
  }
  if (arguments.json) call.out << json_text(list) << "\n";
  return all_legal ? 0 : 2;
}

int optimize_graphs(const GraphArguments& arguments, VerbCall& call) {
  compile_anyway(call.options);
  const auto context = open_context(call);
  const std::optional<Stage> to = stage_from_text(arguments.to);
  USER_CHECK(to.has_value(), "[--to] must be traced, pure, lowered or split, but is {}", quote(arguments.to));
  Json list = Json::array();
  bool first = true;
  for (const auto& graph : read_graphs(arguments.file, context->ops)) {
    verify_text(*graph, context->ops, arguments.file);
    const std::vector<PassRecord> records = arguments.passes.empty()
                                                ? run_passes_to(*graph, *context, *to)
                                                : run_named_passes(*graph, *context, split_text(arguments.passes, ','));
    Json passes = Json::array();
    for (const PassRecord& record : records)
      passes.push_back({{"name", record.name},
                        {"ms", record.milliseconds},
                        {"nodes_before", record.nodes_before},
                        {"nodes_after", record.nodes_after},
                        {"skipped", record.skipped}});
    const std::string text = display(*graph);
    list.push_back({{"name", graph->name}, {"stage", stage_text(graph->stage)}, {"passes", passes}, {"text", text}});
    if (!arguments.json) call.out << (first ? "" : "\n") << text;
    first = false;
  }
  if (arguments.json) call.out << json_text(list) << "\n";
  return 0;
}

int run_graph_file(const GraphArguments& arguments, VerbCall& call) {
  const auto context = open_context(call);
  const auto graphs = read_graphs(arguments.file, context->ops);
  USER_CHECK(graphs.size() == 1, "[graph run] {} must hold one graph, but holds {}", arguments.file, graphs.size());
  Graph& graph = *graphs[0];
  verify_text(graph, context->ops, arguments.file);
  const std::vector<std::string> names = result_names(graph);
  std::optional<Checkpoint> checkpoint;
  if (!arguments.model.name.empty()) checkpoint = Checkpoint::open(arguments.model.path(call));
  const std::vector<Tensor> tensors = run_graph_text(graphs[0], *context, TensorFile(arguments.in), checkpoint);
  std::vector<std::pair<std::string, Tensor>> results;
  Json list = Json::array();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    results.emplace_back(names[i], tensors[i]);
    list.push_back({{"name", names[i]}, {"type", tensors[i].meta.text()}});
  }
  write_results(arguments.out, results);
  if (arguments.json) call.out << json_text(Json{{"graph", graph.name}, {"results", list}}) << "\n";
  return 0;
}

// Prints where patterns match, and where they almost do, as the compiler would find them in the graph.
int match_graphs(const GraphArguments& arguments, VerbCall& call) {
  compile_anyway(call.options);
  const auto context = open_context(call);
  PatternLines lines(parse_pattern_question(arguments.pattern, "--pattern"), *context, call.out);
  Json list = Json::array();
  for (const auto& graph : read_graphs(arguments.file, context->ops)) {
    verify_text(*graph, context->ops, arguments.file);
    USER_CHECK(graph->stage <= Stage::pure, "[graph match] {} is at stage {}: patterns match ops, not kernels",
               graph->name, stage_text(graph->stage));
    complete_bounds(*graph, context->options);
    const TokenRange range = token_range(*graph, context->options);
    if (arguments.json) {
      for (Json& found : lines.json(*graph, range)) list.push_back(std::move(found));
    } else {
      lines.print(graph->name, *graph, range);
    }
  }
  lines.check_node();
  if (arguments.json) call.out << json_text(list) << "\n";
  return 0;
}

using GraphCommand = int (*)(const GraphArguments&, VerbCall&);

}  // namespace
}  // namespace weft

VERB(graph) {
  verbs.add(
      "graph",
      {"Print, verify, optimize, match or run graph text.", [](Flags& flags, VerbCall& call) -> VerbBody {
         auto arguments = std::make_shared<GraphArguments>();
         auto chosen = std::make_shared<GraphCommand>(nullptr);
         const auto add = [&](const char* name, const char* summary, GraphCommand command) -> Flags& {
           Flags& verb = flags.verb(name, summary, [chosen, command] { *chosen = command; });
           verb.option("file", arguments->file, "Graph text.", {.required = true});
           verb.flag("--json", arguments->json, "Print JSON.");
           return verb;
         };
         add("print", "Print graphs and patterns as they parse.", print_graphs)
             .flag("--canonical", arguments->canonical, "Values renumbered, names dropped.");
         add("verify", "Check that graphs are legal at their stage, and patterns keep their rules.", verify_graphs);
         Flags& optimize = add("opt", "Run passes and print the resulting graph.", optimize_graphs);
         optimize.option("--to", arguments->to, "traced, pure, lowered or split.", {.shows_default = true});
         optimize.option("--passes", arguments->passes, "Only these, in this order: a,b.", {.excludes = {"--to"}});
         Flags& match = add("match", "Say where a pattern matches, and where it almost does.", match_graphs);
         match.option("--pattern", arguments->pattern,
                      "A pattern or fusion, all when not given; PATTERN@NODE for one node.");
         Flags& run = add("run", "Run a graph on tensors of a file.", run_graph_file);
         run.option("--in", arguments->in, "Safetensors file with the inputs by name.", {.required = true});
         run.option("--out", arguments->out, "Safetensors file for the results.", {.required = true});
         run.option("-m,--model", arguments->model.name, "A model that fills params by their keys.");
         return [arguments, chosen, &call] { return (*chosen)(*arguments, call); };
       }});
}
