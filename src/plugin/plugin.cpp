#include "plugin/plugin.h"

#include <filesystem>

#include "base/error.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "plugin/flat_host.h"

namespace weft {
namespace {

// The system would search its library folders for a name without a slash, so "./" is added.
SharedLibrary open_library(const std::string& path) {
  std::error_code ignored;
  USER_CHECK(std::filesystem::is_regular_file(path, ignored), "[plugin] {} is not a file", quote(path));
  std::string problem;
  const auto library = SharedLibrary::open(path.find('/') == std::string::npos ? "./" + path : path, problem);
  USER_CHECK(library, "[plugin] {} is not a shared library that can be loaded: {}", quote(path), problem);
  return *library;
}

const weft_plugin& entry_of(const std::string& path) {
  auto* entry = open_library(path).find<const weft_plugin*()>("weft_plugin_entry");
  USER_CHECK(entry != nullptr, "[plugin] {} does not export weft_plugin_entry: it is not a plugin", path);
  const weft_plugin* plugin = nullptr;
  call_plugin("[plugin] weft_plugin_entry", path, [&](weft_message*) {
    plugin = entry();
    return WEFT_OK;
  });
  USER_CHECK(plugin != nullptr, "[plugin] weft_plugin_entry of {} gives nothing", path);
  USER_CHECK(plugin->abi_version == WEFT_PLUGIN_ABI_VERSION,
             "[plugin] {} was built for version {} of weft_plugin.h, but this program has version {}: build it again",
             path, plugin->abi_version, WEFT_PLUGIN_ABI_VERSION);
  return *plugin;
}

}  // namespace

Plugin load_plugin(const std::string& path) {
  const weft_plugin& entry = entry_of(path);
  USER_CHECK(entry.name != nullptr && *entry.name != '\0', "[plugin] {} has no name", path);
  USER_CHECK(entry.bring != nullptr, "[plugin] {} has no function `bring`", path);
  const std::string origin = fmt::format("plugin {}, {}", entry.name, path);
  weft_registry registry{.registrations = Registrations(origin), .origin = origin, .error = ""};
  const std::optional<std::string> refusal = call_plugin("[plugin] bring", origin, [&](weft_message* message) {
    const weft_status status = entry.bring(&flat_host(), &registry, message);
    // The first recorded error says more than the plugin's own message, so it is reported instead.
    return registry.error.empty() ? status : WEFT_OK;
  });
  USER_CHECK(registry.error.empty(), "{} ({})", registry.error, origin);
  USER_CHECK(!refusal, "[plugin] does not load: {} ({})", *refusal, origin);
  return {.path = path,
          .name = entry.name,
          .version = entry.version == nullptr ? "" : entry.version,
          .registrations = std::move(registry.registrations)};
}

}  // namespace weft
