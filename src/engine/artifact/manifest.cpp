#include "engine/artifact/manifest.h"

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr int kDeepest = 8;

// A value of the manifest, and its location for messages.
class ManifestValue {
 public:
  ManifestValue(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  ManifestValue at(const std::string& key) const {
    USER_CHECK(json_.is_object() && json_.contains(key), "[{}] wanted {}, but there is none", where_, key);
    return {json_[key], where_ + " " + key};
  }
  std::string text() const {
    USER_CHECK(json_.is_string(), "[{}] must be a text, but is {}", where_, quote(json_text(json_)));
    return json_.get<std::string>();
  }
  std::int64_t number() const {
    const bool fits = json_.is_number_unsigned() && json_.get<std::uint64_t>() <= INT64_MAX;
    USER_CHECK(fits, "[{}] must be a count, but is {}", where_, quote(json_text(json_)));
    return json_.get<std::int64_t>();
  }
  ContentHash hash() const {
    try {
      return ContentHash::from_hex(text());
    } catch (const UserError& error) {
      fail_user("[{}] {}", where_, error.what());
    }
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    each([&](const ManifestValue& item) { texts.push_back(item.text()); });
    return texts;
  }
  template <class Visit>
  void each(const Visit& visit) const {
    USER_CHECK(json_.is_array(), "[{}] must be a list, but is {}", where_, quote(json_text(json_)));
    for (const Json& item : json_) visit(ManifestValue(item, where_));
  }
  // Visits the pairs of an object whose values are texts.
  template <class Visit>
  void each_pair(const Visit& visit) const {
    USER_CHECK(json_.is_object(), "[{}] must be an object, but is {}", where_, quote(json_text(json_)));
    for (const auto& [key, value] : json_.items()) visit(key, ManifestValue(value, where_ + " " + key).text());
  }

 private:
  const Json& json_;
  std::string where_;
};

template <class Named>  // CheckpointFile and ArtifactMember
Json files_json(const std::vector<Named>& files) {
  Json list = Json::array();
  for (const Named& file : files)
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.hash.hex()}});
  return list;
}

template <class Named>
std::vector<Named> files_at(const ManifestValue& list) {
  std::vector<Named> files;
  list.each([&](const ManifestValue& item) {
    files.push_back({item.at("name").text(), item.at("bytes").number(), item.at("xxh3_128").hash()});
  });
  return files;
}

}  // namespace

Json manifest_json(const ArtifactManifest& manifest) {
  Json options = Json::object(), graphs = Json::array();
  for (const auto& [name, value] : manifest.options) options[name] = value;
  for (const StoredPlans& graph : manifest.graphs) {
    Json factors = Json::object();
    for (const CacheFactor& factor : graph.made_from) factors[factor.name] = factor.value;
    graphs.push_back({{"name", graph.graph}, {"made_from", factors}, {"functions", graph.functions}});
  }
  return {
      {"format", kArtifactFormat},
      {"weft", manifest.weft},
      {"build", manifest.build},
      {"emitter", manifest.emitter},
      {"llvm", manifest.llvm},
      {"device",
       {{"features", manifest.features}, {"threads", manifest.threads}, {"fp8", manifest.fp8}, {"gpu", manifest.gpu}}},
      {"options", options},
      {"architecture", manifest.architecture},
      {"model", manifest.model},
      {"checkpoint", manifest.checkpoint},
      {"files", files_json(manifest.files)},
      {"graphs", graphs},
      {"members", files_json(manifest.members)}};
}

ArtifactManifest parse_manifest(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where, {.most_bytes = kMostBytes, .deepest = kDeepest, .keys_once = true});
  const ManifestValue top(json, where);
  const std::int64_t format = top.at("format").number();
  USER_CHECK(format == kArtifactFormat, "[{}] wanted an artifact of format {}, but it is of format {}", where,
             kArtifactFormat, format);
  ArtifactManifest manifest;
  manifest.weft = top.at("weft").text();
  manifest.build = top.at("build").text();
  manifest.emitter = top.at("emitter").text();
  manifest.llvm = top.at("llvm").text();
  const ManifestValue device = top.at("device");
  manifest.features = device.at("features").text();
  manifest.threads = device.at("threads").number();
  manifest.fp8 = device.at("fp8").text();
  manifest.gpu = device.at("gpu").text();
  top.at("options").each_pair(
      [&](const std::string& name, const std::string& value) { manifest.options.emplace_back(name, value); });
  manifest.architecture = top.at("architecture").text();
  manifest.model = top.at("model").text();
  manifest.checkpoint = top.at("checkpoint").text();
  manifest.files = files_at<CheckpointFile>(top.at("files"));
  top.at("graphs").each([&](const ManifestValue& item) {
    StoredPlans graph{.graph = item.at("name").text(), .made_from = {}, .functions = {}, .bytes = {}};
    item.at("made_from").each_pair([&](const std::string& name, const std::string& value) {
      graph.made_from.push_back({name, value});
    });
    graph.functions = item.at("functions").texts();
    manifest.graphs.push_back(std::move(graph));
  });
  manifest.members = files_at<ArtifactMember>(top.at("members"));
  return manifest;
}

}  // namespace weft
