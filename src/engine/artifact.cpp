#include "engine/artifact.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/build_id.h"
#include "base/error.h"
#include "base/options_text.h"
#include "base/text.h"
#include "base/version.h"
#include "base/zip_archive.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "engine/artifact_manifest.h"
#include "engine/open_checkpoint.h"
#include "ir/print.h"

namespace weft {
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr const char* kWeights = "weights/";
constexpr std::size_t kMostMemberBytes = std::size_t{1} << 30;

struct Member {
  std::string name;
  std::vector<std::byte> bytes;
};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string plans_name(const std::string& graph) { return "plans/" + graph + ".bin"; }

std::vector<std::pair<std::string, std::string>> stated_options(const Options& effective) {
  auto options = code_options(options_of_content(effective));
  // What a device is comes from the host, and is stated as what it came to.
  std::erase_if(options, [](const auto& option) { return option.first == "cpu-features"; });
  return options;
}

// The last name of a path, also where it ends in a slash or a dot.
std::string last_name(const std::string& path) {
  std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.filename().string();
}

bool is_builtin(const std::string& model) {
  const auto models = builtin_models();
  return std::any_of(models.begin(), models.end(), [&](const BuiltinModel& known) { return model == known.name; });
}

Member graph_member(const Graph& graph, const std::string& name, TokenRange range) {
  const std::string file = fmt::format("graphs/{:02}-{}.{}.{}-{}.graph", static_cast<int>(graph.stage),
                                       stage_text(graph.stage), name, range.lo, range.hi);
  return {file, bytes_of(display(graph))};
}

std::vector<Member> members_of(ModelCompiler& model, std::vector<StoredPlans>& graphs) {
  std::vector<Member> members;
  std::map<std::string, TokenRange> all;  // the ranges of a graph together
  for (const CompileRecord& record : model.records()) {
    TokenRange& range = all.try_emplace(record.graph, record.range).first->second;
    range = {std::min(range.lo, record.range.lo), std::max(range.hi, record.range.hi)};
  }
  for (const auto& traced : {model.forward().traced, model.head().traced})
    members.push_back(graph_member(*traced, traced->name, all.at(traced->name)));
  for (const CompileRecord& record : model.records())
    members.push_back(graph_member(*record.split, record.graph, record.range));
  for (StoredPlans& graph : graphs) members.push_back({plans_name(graph.graph), std::move(graph.bytes)});
  return members;
}

// What code of the device in the Plans is made for.
std::string gpu_of(const Context& context) {
  return context.stream_device == nullptr ? "" : fmt::format("sm_{}", context.device.compute_capability);
}

std::string gpu_text(const std::string& gpu) { return gpu.empty() ? "no GPU" : "a GPU of " + quote(gpu); }

// How the files of two checkpoints differ; "" where they do not.
std::string difference_of(const std::vector<CheckpointFile>& wanted, const std::vector<CheckpointFile>& found) {
  if (wanted.size() != found.size()) return fmt::format("{} files, but there are {}", wanted.size(), found.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].bytes != found[i].bytes)
      return fmt::format("{} of {} bytes, but it has {}", quote(wanted[i].name), wanted[i].bytes, found[i].bytes);
    if (wanted[i].hash != found[i].hash)
      return fmt::format("{} of hash {}, but it has {}", quote(wanted[i].name), wanted[i].hash.hex(),
                         found[i].hash.hex());
  }
  return "";
}

}  // namespace

bool is_artifact(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  if (path.ends_with(".weft")) return true;
  constexpr std::string_view kZip = "PK\x03\x04";
  std::string beginning(kZip.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(beginning.data(), static_cast<std::streamsize>(beginning.size())) && beginning == kZip;
}

ArtifactManifest write_artifact(const ArtifactSettings& settings, ModelCompiler& model) {
  const Context& context = model.context();
  const Checkpoint& checkpoint = model.checkpoint();
  USER_CHECK(checkpoint.is_gguf() || !settings.with_weights,
             "[--with-weights] takes the model of a GGUF file, but {} is a folder", quote(checkpoint.path(), 1000));
  std::error_code ignored;
  USER_CHECK(!std::filesystem::equivalent(settings.path, checkpoint.path(), ignored), "[{}] is the model itself",
             quote(settings.path, 1000));
  ArtifactManifest manifest{.weft = kVersion,
                            .build = build_id(),
                            .emitter = std::string(row_emitter_hash()),
                            .llvm = std::string(row_emitter_llvm()),
                            .features = cpu_features_text(context.device.features),
                            .threads = context.device.threads,
                            .fp8 = std::string(dtype_text(context.device.fp8)),
                            .gpu = gpu_of(context),
                            .options = stated_options(context.options),
                            .architecture = checkpoint.architecture(),
                            .model = is_builtin(settings.model) ? settings.model : "",
                            .checkpoint = last_name(checkpoint.path()),
                            .files = checkpoint.files(),
                            .graphs = model.store_plans(),
                            .members = {}};
  const std::vector<Member> members = members_of(model, manifest.graphs);
  if (settings.with_weights)
    manifest.members.push_back({kWeights + manifest.checkpoint, manifest.files[0].bytes, manifest.files[0].hash});
  for (const Member& member : members)
    manifest.members.push_back({member.name, static_cast<std::int64_t>(member.bytes.size()), hash_bytes(member.bytes)});
  const std::vector<std::byte> text = bytes_of(json_text(manifest_json(manifest), 2) + "\n");
  ZipWriter archive(settings.path);
  if (settings.with_weights) archive.add_mappable(manifest.members[0].name, checkpoint.gguf_bytes());
  archive.add(kManifest, text);
  for (const Member& member : members) archive.add(member.name, member.bytes);
  archive.write();
  checkpoint.drop_pages();
  return manifest;
}

Artifact Artifact::open(const std::string& path) {
  Artifact artifact;
  artifact.path_ = path;
  const ZipReader archive(path);
  const std::vector<std::string> names = archive.names();
  const std::string where = quote(path, 1000);
  const auto read = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    USER_CHECK(found != names.end(), "[{}] wanted the member {}, but there is none", where, quote(name));
    try {
      return archive.read(static_cast<std::size_t>(found - names.begin()), kMostMemberBytes);
    } catch (const UserError& error) {
      fail_user("[{}] the member {} is damaged: {}", where, quote(name), error.what());
    }
  };
  const std::vector<std::byte> text = read(kManifest);
  artifact.manifest_ =
      parse_manifest({reinterpret_cast<const char*>(text.data()), text.size()}, where + " " + kManifest);
  ArtifactManifest& manifest = artifact.manifest_;
  USER_CHECK(names.size() == manifest.members.size() + 1, "[{}] wanted {} members, but it has {}", where,
             manifest.members.size() + 1, names.size());
  std::map<std::string, std::vector<std::byte>> contents;
  for (const ArtifactMember& member : manifest.members) {
    if (member.name.starts_with(kWeights)) {
      USER_CHECK(names.front() == member.name, "[{}] wanted the member {} first, but that is {}", where,
                 quote(member.name), quote(names.front()));
      artifact.weights_ = archive.place_of_first();
      continue;
    }
    std::vector<std::byte> bytes = read(member.name);
    USER_CHECK(static_cast<std::int64_t>(bytes.size()) == member.bytes && hash_bytes(bytes) == member.hash,
               "[{}] the member {} is damaged: it is not what the manifest says", where, quote(member.name));
    contents[member.name] = std::move(bytes);
  }
  for (StoredPlans& graph : manifest.graphs) {
    const auto found = contents.find(plans_name(graph.graph));
    USER_CHECK(found != contents.end(), "[{}] wanted the member {}, but there is none", where,
               quote(plans_name(graph.graph)));
    graph.bytes = std::move(found->second);
  }
  return artifact;
}

void Artifact::take_options(Options& options) const {
  USER_CHECK(manifest_.build == build_id(),
             "[{}] was compiled by build {} of weft {}, but this is build {} of weft {}; compile it anew",
             quote(path_, 1000), quote(manifest_.build), quote(manifest_.weft), build_id(), kVersion);
  const auto requested = options.requested;
  const auto was_requested = [&](std::string_view name) {
    return std::any_of(requested.begin(), requested.end(),
                       [&](const auto& one) { return find_option(one.first) == find_option(name); });
  };
  const auto take = [&](const std::string& name, const std::string& text) {
    if (!was_requested(name)) set_option(options, name, text, path_);
  };
  take("cpu-features", manifest_.features);
  if (options.threads == 0 && manifest_.threads <= describe_cpu("", 0).threads) options.threads = manifest_.threads;
  for (const auto& [name, value] : manifest_.options) {
    const OptionRow* row = find_option(name);
    // Files and what was made with them are for their user to name.
    const bool is_open = row != nullptr && row->effect == OptionEffect::code && name != "tuned" &&
                         row->limits.check != OptionCheck::repeatable && value_text(options, *row) != value;
    if (is_open) take(name, value);
  }
  options.requested = requested;
}

Checkpoint Artifact::open_checkpoint(const std::string& given, const Options& options,
                                     const EnvironmentLookup& environment) const {
  const auto open = [&](const std::string& path) {
    return weft::open_checkpoint(path, options, make_model_registry());
  };
  if (!given.empty()) return open(resolve_model(given, options, environment));
  if (weights_) return Checkpoint::open_part(path_, *weights_);
  const std::filesystem::path beside = std::filesystem::path(path_).parent_path() / last_name(manifest_.checkpoint);
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) return open(beside.string());
  USER_CHECK(is_builtin(manifest_.model),
             "[{}] wanted its checkpoint at {}, but there is none; name it: --checkpoint PATH", quote(path_, 1000),
             quote(beside.string(), 1000));
  return open(resolve_model(manifest_.model, options, environment));
}

void Artifact::check(const Context& context, const Checkpoint& checkpoint) const {
  const std::string where = quote(path_, 1000);
  const DeviceDescription& device = context.device;
  USER_CHECK(manifest_.features == cpu_features_text(device.features),
             "[{}] was compiled for the features {}, but this device has {}", where, quote(manifest_.features),
             cpu_features_text(device.features));
  USER_CHECK(manifest_.threads == device.threads, "[{}] was compiled for {} threads, but here are {}", where,
             manifest_.threads, device.threads);
  USER_CHECK(manifest_.fp8 == dtype_text(device.fp8), "[{}] was compiled for {}, but this device has {}", where,
             quote(manifest_.fp8), dtype_text(device.fp8));
  const auto here = stated_options(context.options);
  USER_CHECK(manifest_.options.size() == here.size(), "[{}] has {} options, but there are {}", where,
             manifest_.options.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    USER_CHECK(manifest_.options[i] == here[i], "[{}] was compiled with --{} {}, but here it is {}", where,
               here[i].first, quote(manifest_.options[i].second), quote(here[i].second));
  USER_CHECK(manifest_.gpu == gpu_of(context), "[{}] was compiled for {}, but here is {}", where,
             gpu_text(manifest_.gpu), gpu_text(gpu_of(context)));
  const std::string difference = difference_of(manifest_.files, checkpoint.files());
  USER_CHECK(difference.empty(), "[{}] was compiled for {}, in {}", where, difference, quote(checkpoint.path(), 1000));
}

std::shared_ptr<const PlanSource> Artifact::plans() const {
  return std::make_shared<const PlanSource>(PlanSource{.name = quote(path_, 1000), .graphs = manifest_.graphs});
}

}  // namespace weft
