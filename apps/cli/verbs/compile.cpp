#include <filesystem>
#include <set>

#include "apps/cli/session.h"
#include "apps/cli/target_argument.h"
#include "base/error.h"
#include "base/text.h"
#include "builtin/models.h"
#include "engine/artifact/artifact.h"
#include "engine/artifact/manifest.h"

namespace weft {
namespace {

struct CompileArguments {
  ModelArgument model;
  std::string output;
  TargetArgument target;
  std::string inspected;
  bool with_weights = false;
  bool json = false;
};

// What the file holds: a function that graphs share once, and the manifest besides the members that it names.
std::string summary_of(const std::string& path, const ArtifactManifest& manifest) {
  std::set<std::string> functions;
  for (const StoredPlans& graph : manifest.graphs) functions.insert(graph.functions.begin(), graph.functions.end());
  return fmt::format("{}: {} graphs, {} functions, {} members, {} bytes\n", quote(path, 1000), manifest.graphs.size(),
                     functions.size(), manifest.members.size() + 1, std::filesystem::file_size(path));
}

std::string manifest_text(const ArtifactManifest& manifest) {
  std::string text = fmt::format("weft          {}, build {}\ncode          LLVM {}, emitter {}\n", manifest.weft,
                                 manifest.build, manifest.llvm, manifest.emitter);
  text += fmt::format("device        {}, {} threads, {}{}\narchitecture  {}\n", manifest.features, manifest.threads,
                      manifest.fp8, manifest.gpu.empty() ? "" : ", " + manifest.gpu, manifest.architecture);
  text += fmt::format("checkpoint    {}{}\n", quote(manifest.checkpoint),
                      manifest.model.empty() ? "" : fmt::format(" ({})", quote(manifest.model)));
  for (const CheckpointFile& file : manifest.files)
    text += fmt::format("  {} {:>12}  {}\n", file.hash.hex(), file.bytes, quote(file.name));
  text += "options\n";
  for (const auto& [name, value] : manifest.options) text += fmt::format("  {} = {}\n", quote(name), quote(value));
  for (const StoredPlans& graph : manifest.graphs) {
    text += fmt::format("graph {}\n", quote(graph.graph));
    for (const CacheFactor& factor : graph.made_from)
      text += fmt::format("  {} = {}\n", quote(factor.name), quote(factor.value));
    for (const std::string& function : graph.functions) text += fmt::format("  function {}\n", quote(function));
  }
  text += "members\n";
  for (const ArtifactMember& member : manifest.members)
    text += fmt::format("  {} {:>12}  {}\n", member.hash.hex(), member.bytes, quote(member.name));
  return text;
}

int inspect(const CompileArguments& arguments, VerbCall& call) {
  USER_CHECK(arguments.model.name.empty() && arguments.output.empty() && arguments.target.given.empty() &&
                 !arguments.with_weights,
             "[--inspect] shows a file alone: MODEL, -o, --target and --with-weights do not go with it");
  const Artifact artifact = Artifact::open(arguments.inspected);
  call.out << (arguments.json ? json_text(manifest_json(artifact.manifest()), 2) + "\n"
                              : manifest_text(artifact.manifest()));
  return 0;
}

int compile_model(const CompileArguments& arguments, VerbCall& call) {
  if (!arguments.inspected.empty()) return inspect(arguments, call);
  USER_CHECK(!arguments.model.name.empty(), "[model] must be given: weft compile MODEL -o FILE");
  USER_CHECK(!arguments.output.empty(), "[-o] must be given: the file to write, model.weft");
  const auto context = arguments.target.open_context(call);
  ModelCompilation model(context, arguments.model.open(call), make_model_registry());
  if (eager_option(context->options).empty()) model.compile();
  const ArtifactManifest manifest = write_artifact(
      {.path = arguments.output, .model = arguments.model.name, .with_weights = arguments.with_weights}, model);
  if (arguments.json) {
    call.out << json_text(manifest_json(manifest), 2) << "\n";
  } else {
    call.out << summary_of(arguments.output, manifest);
  }
  return 0;
}

}  // namespace
}  // namespace weft

VERB(compile) {
  verbs.add("compile",
            {fmt::format("Compile a model ahead of time into one file, which {} take.", kArtifactVerbs),
             [](Flags& flags, VerbCall& call) -> VerbBody {
               auto arguments = std::make_shared<CompileArguments>();
               arguments->model.declare(flags, ModelArgument::optional);
               flags.option("-o,--output", arguments->output,
                            "The file to write, model.weft. It holds machine code: run only what you trust.");
               arguments->target.declare(flags);
               flags.flag(
                   "--with-weights", arguments->with_weights,
                   "Put the model's files inside, where they are mapped, instead of their names and hashes alone.");
               flags.option("--inspect", arguments->inspected, "Instead: print what such a file holds; loads no code.");
               flags.flag("--json", arguments->json, "Print the manifest as JSON.");
               return [arguments, &call] { return compile_model(*arguments, call); };
             }});
}
