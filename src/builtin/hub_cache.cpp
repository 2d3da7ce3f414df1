#include "builtin/hub_cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualFormat = "Q4_K_M";  // llama.cpp's
constexpr std::size_t kMostRevisionBytes = 4096;

struct HubName {
  std::string user, repository, format;
};

bool is_word(const std::string& text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !text.empty() && text[0] != '.' && std::all_of(text.begin(), text.end(), is_part);
}

std::optional<HubName> parse_name(const std::string& name) {
  const std::size_t slash = name.find('/'), colon = name.find(':');
  if (slash == std::string::npos) return std::nullopt;
  const HubName parsed{.user = name.substr(0, slash),
                       .repository = name.substr(slash + 1, colon == std::string::npos ? colon : colon - slash - 1),
                       .format = colon == std::string::npos ? "" : name.substr(colon + 1)};
  const bool is_valid = (colon == std::string::npos || colon > slash) && is_word(parsed.user) &&
                        is_word(parsed.repository) && (colon == std::string::npos || is_word(parsed.format));
  return is_valid ? std::optional(parsed) : std::nullopt;
}

// Whether the format is a part of the name between other signs: Q4_K is not one of model-Q4_K_M.gguf.
bool has_format(const std::string& file, const std::string& format) {
  const std::string text = to_lower_ascii(file), wanted = to_lower_ascii(format);
  const auto is_inside = [&](std::size_t at) {
    const char c = at < text.size() ? text[at] : '.';
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1))
    if ((at == 0 || !is_inside(at - 1)) && !is_inside(at + wanted.size())) return true;
  return false;
}

// Of a model in several parts the first one alone.
bool is_model_file(const std::string& file) {
  const std::string name = to_lower_ascii(file);
  if (!name.ends_with(".gguf") || name.find("mmproj") != std::string::npos) return false;
  const std::size_t of = name.rfind("-of-");
  return of == std::string::npos || of < 6 || name.substr(of - 6, 6) == "-00001";
}

// Sorted, with their folders below `folder`.
std::vector<std::string> model_files(const std::string& folder, const std::string& prefix) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = fs::path(entry->path()).lexically_relative(folder).string();
    if (path.starts_with(prefix) && is_model_file(path)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string chosen_file(const std::string& name, const HubName& parsed, const std::string& folder,
                        const std::vector<std::string>& files) {
  const auto of_format = [&](const std::string& format) {
    std::vector<std::string> found;
    std::copy_if(files.begin(), files.end(), std::back_inserter(found),
                 [&](const std::string& file) { return has_format(file, format); });
    return found;
  };
  std::vector<std::string> found = of_format(parsed.format.empty() ? kUsualFormat : parsed.format);
  if (found.empty() && parsed.format.empty()) found = files;
  USER_CHECK(found.size() == 1, "[model] {} wanted one GGUF file{} in {}, but there {} {}: {}", quote(name),
             parsed.format.empty() ? "" : " of " + parsed.format, folder, files.size() == 1 ? "is" : "are",
             files.size(), fmt::join(files, ", "));
  return folder + "/" + found[0];
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The folder of the revision; nullopt if nothing was downloaded.
std::optional<std::string> snapshot_of(const std::string& name, const std::string& model, const std::string& revision) {
  const std::vector<std::string> snapshots = names_in(model + "/snapshots");
  if (snapshots.empty()) return std::nullopt;
  std::error_code none;
  const std::string reference = model + "/refs/" + (revision.empty() ? "main" : revision);
  std::string commit = revision;
  if (fs::is_regular_file(reference, none)) commit = std::string(trim(read_file(reference, kMostRevisionBytes)));
  if (commit.empty() && snapshots.size() == 1) commit = snapshots[0];
  USER_CHECK(std::find(snapshots.begin(), snapshots.end(), commit) != snapshots.end(),
             "[model] {} has no snapshot of {} in {}, where {} {}; --revision names one", quote(name),
             commit.empty() ? "main" : quote(commit), model, snapshots.size() == 1 ? "is" : "are",
             fmt::join(snapshots, ", "));
  return model + "/snapshots/" + commit;
}

}  // namespace

bool is_hub_name(const std::string& name) { return parse_name(name).has_value(); }

HubCache HubCache::of_user(const EnvironmentLookup& environment) {
  const auto variable = [&](const char* name) { return environment(name).value_or(""); };
  std::string caches = variable("XDG_CACHE_HOME");
  if (const std::string home = variable("HOME"); caches.empty() && !home.empty()) caches = home + "/.cache";
  HubCache cache{.folder = variable("HF_HUB_CACHE"), .llama_folder = variable("LLAMA_CACHE")};
  if (const std::string home = variable("HF_HOME"); cache.folder.empty() && !home.empty()) cache.folder = home + "/hub";
  if (cache.folder.empty() && !caches.empty()) cache.folder = caches + "/huggingface/hub";
  if (cache.llama_folder.empty() && !caches.empty()) cache.llama_folder = caches + "/llama.cpp";
  return cache;
}

std::optional<std::string> HubCache::find(const std::string& name) const {
  const std::optional<HubName> parsed = parse_name(name);
  if (!parsed) return std::nullopt;
  const std::string model = folder + "/models--" + parsed->user + "--" + parsed->repository;
  if (const auto snapshot = folder.empty() ? std::nullopt : snapshot_of(name, model, revision)) {
    std::error_code none;
    const std::vector<std::string> files = model_files(*snapshot, "");
    const bool is_file = !parsed->format.empty() || (!files.empty() && !fs::exists(*snapshot + "/config.json", none));
    return is_file ? chosen_file(name, *parsed, *snapshot, files) : *snapshot;
  }
  if (llama_folder.empty() || !revision.empty()) return std::nullopt;
  const std::vector<std::string> files = model_files(llama_folder, parsed->user + "_" + parsed->repository + "_");
  if (files.empty()) return std::nullopt;
  return chosen_file(name, *parsed, llama_folder, files);
}

}  // namespace weft
