#include "apps/cli/config_file.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "options/option_value.h"
#include "options/options.h"

namespace weft {
namespace {

constexpr std::size_t kMostConfigBytes = 1 << 20;
constexpr std::string_view kFlag = "--config";

// Takes --config FILE off the words.
std::optional<std::string> take_path(std::vector<std::string>& words) {
  for (auto word = words.begin(); word != words.end() && *word != "--"; ++word) {
    const bool has_value = word->starts_with("--config=");
    if (!has_value && *word != kFlag) continue;
    const bool ends = !has_value && std::next(word) == words.end();
    USER_CHECK(!ends, "[--config] wanted a file, but the command line ends");
    const std::string path = has_value ? word->substr(kFlag.size() + 1) : *std::next(word);
    words.erase(word, word + (has_value ? 1 : 2));
    return path;
  }
  return std::nullopt;
}

// --port 1, --port=1, --no-port, and the same with `_` for `-`.
bool gives(const std::string& word, const std::string& flag) {
  if (!word.starts_with('-')) return false;
  const std::string name = plain_spelling(word.substr(0, word.find('='))), wanted = plain_spelling(flag);
  return name == wanted || name == "no-" + wanted;
}

// The first word may be MODEL without its flag.
bool gives_model(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "-m") != words.end() || (!words.empty() && !words[0].starts_with('-'));
}

void add_flag(std::vector<std::string>& flags, const std::string& flag, const Json& value) {
  if (value.is_boolean()) {
    const OptionRow* row = find_option(flag);
    if (value.get<bool>()) flags.push_back(flag);
    // A flag of the verb itself is off where it is not given.
    if (!value.get<bool>() && row != nullptr && is_flag(*row)) flags.push_back("--no-" + flag.substr(2));
    return;
  }
  const bool is_list = value.is_array() && find_option(flag) == nullptr;
  for (const Json& one : is_list ? value : Json::array({value})) {
    flags.push_back(flag);
    flags.push_back(one.is_string() ? one.get<std::string>() : json_text(one));
  }
}

}  // namespace

std::vector<std::string> with_flags_of_config(std::vector<std::string> words) {
  const std::optional<std::string> path = take_path(words);
  if (!path) return words;
  const std::string text = read_file(*path, kMostConfigBytes);
  const Json config = trim(text).starts_with('{') ? parse_json(text) : json_of_yaml(text, *path);
  USER_CHECK(config.is_object(), "[--config] {} must have flags, in YAML (port: 8000) or JSON ({{\"port\": 8000}})",
             quote(*path, 1000));
  std::vector<std::string> flags;
  for (const auto& [key, value] : config.items()) {
    std::string flag = "--" + key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const bool is_given =
        std::any_of(words.begin(), words.end(), [&](const std::string& word) { return gives(word, flag); });
    const bool has_model = flag == "--model" && gives_model(words);
    if (!is_given && !has_model && !value.is_null()) add_flag(flags, flag, value);
  }
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

}  // namespace weft
