#include "engine/artifact/artifact.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include <elf.h>

#include "base/build_id.h"
#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "base/zip_archive.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "engine/artifact/manifest.h"
#include "engine/open_checkpoint.h"
#include "ir/print.h"
#include "options/options_text.h"

namespace weft {
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr const char* kWeights = "weights/";
constexpr const char* kObjects = "objects/";
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

// The name has the content's hash, and an extension for its kind: the host's object file, a device's binary, or PTX.
std::string object_name(std::span<const std::byte> object) {
  Elf64_Ehdr header{};
  if (object.size() >= sizeof header) std::memcpy(&header, object.data(), sizeof header);
  const bool is_elf = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
  const char* end = !is_elf ? ".ptx" : header.e_machine == EM_X86_64 ? ".o" : ".cubin";
  return kObjects + hash_bytes(object).hex() + end;
}

std::vector<std::pair<std::string, std::string>> stated_options(const Options& effective) {
  auto options = code_options(options_of_content(effective));
  // The manifest states the CPU features that this option resolved to (`features`), not the option itself.
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

Member graph_member(const Graph& graph, TokenRange range) {
  const std::string file = fmt::format("graphs/{:02}-{}.{}.{}-{}.graph", static_cast<int>(graph.stage),
                                       stage_text(graph.stage), graph.name, range.lo, range.hi);
  return {file, bytes_of(display(graph))};
}

// The passes run here only to get the graphs: Plans that were found in the compile cache have none, and each artifact
// must have the same members.
std::vector<Member> members_of(const ModelCompilation& model, std::vector<StoredPlans>& graphs) {
  std::vector<Member> members;
  for (const ModelGraph* graph : model.graphs())
    for (const TokenRange& range : graph->ranges)
      for (const auto& stage : stages_of(*graph->traced, model.context(), range))
        members.push_back(graph_member(*stage, range));
  CodeObjects objects;
  for (StoredPlans& graph : graphs) objects.merge(std::exchange(graph.objects, {}));
  for (auto& [hash, object] : objects) members.push_back({object_name(object), std::move(object)});
  for (StoredPlans& graph : graphs) members.push_back({plans_name(graph.graph), std::move(graph.bytes)});
  return members;
}

// The members of an archive. Errors begin with [where].
class MemberReader {
 public:
  explicit MemberReader(const std::string& path)
      : archive_(path), names_(archive_.names()), where_(quote(path, 1000)) {}

  const std::string& where() const { return where_; }

  // Reads the manifest, and checks that it lists as many members as the archive has.
  ArtifactManifest manifest() const {
    USER_CHECK(
        std::find(names_.begin(), names_.end(), kManifest) != names_.end(),
        "[{}] is a zip file without {}, so it is none of weft compile; files of PyTorch are read in their folder",
        where_, kManifest);
    const std::vector<std::byte> text = read(kManifest);
    ArtifactManifest manifest =
        parse_manifest({reinterpret_cast<const char*>(text.data()), text.size()}, where_ + " " + kManifest);
    USER_CHECK(names_.size() == manifest.members.size() + 1, "[{}] wanted {} members, but it has {}", where_,
               manifest.members.size() + 1, names_.size());
    return manifest;
  }

  // Checks the member's size and hash against the manifest.
  std::vector<std::byte> read(const ArtifactMember& member) const {
    std::vector<std::byte> bytes = read(member.name);
    USER_CHECK(static_cast<std::int64_t>(bytes.size()) == member.bytes && hash_bytes(bytes) == member.hash,
               "[{}] the member {} is damaged: its size or checksum differs from the manifest's", where_,
               quote(member.name));
    return bytes;
  }

  // The places of the model's files, by their names. These must be the first members.
  std::map<std::string, FilePart> places_of_weights(std::span<const ArtifactMember> members) const {
    const auto is_weight = [](const ArtifactMember& member) { return member.name.starts_with(kWeights); };
    const auto count = static_cast<std::size_t>(std::count_if(members.begin(), members.end(), is_weight));
    for (std::size_t i = 0; i < count; ++i)
      USER_CHECK(is_weight(members[i]) && members[i].name == names_[i],
                 "[{}] wanted the {} members of the model first, but member {} is {}", where_, count, i,
                 quote(names_[i]));
    const std::vector<FilePart> places = archive_.places_of_first(count);
    std::map<std::string, FilePart> by_name;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_new = by_name.emplace(names_[i].substr(std::string_view(kWeights).size()), places[i]).second;
      USER_CHECK(is_new, "[{}] has the member {} twice", where_, quote(names_[i]));
    }
    return by_name;
  }

 private:
  std::vector<std::byte> read(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    USER_CHECK(found != names_.end(), "[{}] wanted the member {}, but there is none", where_, quote(name));
    try {
      return archive_.read(static_cast<std::size_t>(found - names_.begin()), kMostMemberBytes);
    } catch (const UserError& error) {
      fail_user("[{}] the member {} is damaged: {}", where_, quote(name), error.what());
    }
  }

  ZipReader archive_;
  std::vector<std::string> names_;
  std::string where_;
};

bool is_in_files(const ArtifactMember& member, const std::vector<CheckpointFile>& files) {
  return std::any_of(files.begin(), files.end(),
                     [&](const CheckpointFile& file) { return member.name == kWeights + file.name; });
}

// Gives each graph the objects that its Plans name. Throws UserError, which begins with [where], if one is missing, or
// if no Plans name an object.
void give_objects(std::vector<StoredPlans>& graphs, const CodeObjects& objects, const std::string& where) {
  std::set<ContentHash> named;
  for (StoredPlans& graph : graphs) {
    std::set<ContentHash> own;
    try {
      own = objects_named(graph);
    } catch (const UserError& error) {
      fail_user("[{}] the plans of {} are of no use: {}", where, quote(graph.graph), error.what());
    }
    for (const ContentHash& hash : own) {
      const auto found = objects.find(hash);
      USER_CHECK(found != objects.end(), "[{}] the plans of {} want the object {}, but there is none", where,
                 quote(graph.graph), hash.hex());
      graph.objects.insert(*found);
    }
    named.merge(own);
  }
  for (const auto& [hash, object] : objects)
    USER_CHECK(named.contains(hash), "[{}] no plans want the object {}, but it is there", where, hash.hex());
}

// The GPU for which the device code in the Plans is made, or "" without a GPU.
std::string gpu_of(const Context& context) {
  return context.stream_device == nullptr ? "" : fmt::format("sm_{}", context.device.compute_capability);
}

std::string gpu_text(const std::string& gpu) { return gpu.empty() ? "no GPU" : "a GPU of " + quote(gpu); }

// The first difference between the files of two checkpoints, or "" if there is none.
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

// Whether the path is the model, a file of its weights or texts, or any other file in its folder. The checkpoint does
// not name all files of a folder: --load-format dummy reads no weights, and other programs read files that Weft does
// not. An artifact is not a file of the model, so one in the folder may be overwritten.
bool is_file_of(const Checkpoint& checkpoint, const std::string& path) {
  namespace filesystem = std::filesystem;
  std::error_code ignored;
  std::set<filesystem::path> files{checkpoint.path()};
  for (const TensorEntry& entry : checkpoint.tensors()) files.insert(entry.file);
  if (!checkpoint.is_gguf() && !is_artifact(path)) {
    filesystem::path folder = checkpoint.path();
    if (!filesystem::is_directory(folder, ignored)) folder = folder.parent_path();
    for (const std::string& name : checkpoint.text_names()) files.insert(folder / name);
    for (filesystem::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored))
      files.insert(at->path());
  }
  return std::any_of(files.begin(), files.end(),
                     [&](const filesystem::path& file) { return filesystem::equivalent(path, file, ignored); });
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

ArtifactManifest write_artifact(const ArtifactSettings& settings, ModelCompilation& model) {
  const Context& context = model.context();
  const Checkpoint& checkpoint = model.checkpoint();
  USER_CHECK(checkpoint.is_gguf() || !checkpoint.is_dummy() || !settings.with_weights,
             "[--with-weights] wanted the weights of {}, but --load-format dummy reads none",
             quote(checkpoint.path(), 1000));
  USER_CHECK(!is_file_of(checkpoint, settings.path), "[{}] is a file of the model", quote(settings.path, 1000));
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
  const std::vector<ModelFile> weights = settings.with_weights ? checkpoint.all_files() : std::vector<ModelFile>();
  for (std::size_t i = 0; i < weights.size(); ++i) {  // the first files are the manifest's, in its order
    const ContentHash hash = i < manifest.files.size() ? manifest.files[i].hash : hash_bytes(weights[i].bytes);
    manifest.members.push_back({kWeights + weights[i].name, static_cast<std::int64_t>(weights[i].bytes.size()), hash});
  }
  for (const Member& member : members)
    manifest.members.push_back({member.name, static_cast<std::int64_t>(member.bytes.size()), hash_bytes(member.bytes)});
  const std::vector<std::byte> text = bytes_of(json_text(manifest_json(manifest), 2) + "\n");
  ZipWriter archive(settings.path);
  for (const ModelFile& file : weights) archive.add_mappable(kWeights + file.name, file.bytes);
  archive.add(kManifest, text);
  for (const Member& member : members) archive.add(member.name, member.bytes);
  archive.write();
  checkpoint.drop_pages();
  return manifest;
}

Artifact Artifact::open(const std::string& path) {
  Artifact artifact;
  artifact.path_ = path;
  const MemberReader archive(path);
  artifact.manifest_ = archive.manifest();
  ArtifactManifest& manifest = artifact.manifest_;
  artifact.weights_ = archive.places_of_weights(manifest.members);
  std::map<std::string, std::vector<std::byte>> contents;
  CodeObjects objects;
  for (const ArtifactMember& member : manifest.members) {
    if (is_in_files(member, manifest.files)) continue;  // check() compares the loaded checkpoint with the manifest
    std::vector<std::byte> bytes = archive.read(member);
    if (!member.name.starts_with(kObjects)) {
      contents[member.name] = std::move(bytes);
      continue;
    }
    USER_CHECK(object_name(bytes) == member.name, "[{}] the member {} holds what belongs to {}", archive.where(),
               quote(member.name), quote(object_name(bytes)));
    objects.emplace(member.hash, std::move(bytes));
  }
  for (StoredPlans& graph : manifest.graphs) {
    const auto found = contents.find(plans_name(graph.graph));
    USER_CHECK(found != contents.end(), "[{}] wanted the member {}, but there is none", archive.where(),
               quote(plans_name(graph.graph)));
    graph.bytes = std::move(found->second);
  }
  give_objects(manifest.graphs, objects, archive.where());
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
    // Repeatable options, which may name files, and tuning results are not taken: the user must give them.
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
  if (!weights_.empty()) return Checkpoint::open_parts(path_, weights_);
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
  // Scratch was planned for this number of threads.
  USER_CHECK(device.threads <= manifest_.threads, "[{}] was compiled for up to {} threads, but here are {}", where,
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

void Artifact::load_plans(Context& context, const Checkpoint& checkpoint) const {
  check(context, checkpoint);
  context.stored_plans =
      std::make_shared<const PlanSource>(PlanSource{.name = quote(path_, 1000), .graphs = manifest_.graphs});
}

}  // namespace weft
