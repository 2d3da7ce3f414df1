#include "plugin/plugin.h"

#include <filesystem>

#include <dlfcn.h>

#include "base/error.h"
#include "plugin/flat_host.h"

namespace weft {
namespace {

using Entry = const weft_plugin* (*)();

// The path as dlopen takes it: a name without a slash would be looked for in the system's folders.
void* open_library(const std::string& path) {
  std::error_code ignored;
  USER_CHECK(std::filesystem::is_regular_file(path, ignored), "[plugin] {} is not a file", path);
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    fail_user("[plugin] {} is not a shared library that can be loaded: {}", path, reason == nullptr ? "" : reason);
  }
  return library;
}

const weft_plugin& entry_of(const std::string& path) {
  void* symbol = ::dlsym(open_library(path), "weft_plugin_entry");
  USER_CHECK(symbol != nullptr, "[plugin] {} does not export weft_plugin_entry: it is not a plugin", path);
  const weft_plugin* plugin = nullptr;
  call_plugin("[plugin] weft_plugin_entry", path, [&](weft_message*) {
    plugin = reinterpret_cast<Entry>(symbol)();
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
    // What went wrong first says more than the plugin can.
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
