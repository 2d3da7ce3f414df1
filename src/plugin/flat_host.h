#pragma once

// The functions of weft_host, which a plugin may call, and the structs of its handles. No function lets an exception
// out into the plugin's code.

#include <optional>
#include <string>
#include <vector>

#include <weft/weft_plugin.h>

#include "plugin/registrations.h"

struct weft_attributes {
  const weft::Attributes* values;
};

struct weft_results {
  std::span<const std::optional<weft::Meta>> operands;
  std::vector<std::optional<weft::Meta>> types;
  std::string error;  // of the first call that failed; "" for none
};

struct weft_threads {
  weft::ThreadPool* pool;
  mutable std::string error;  // the message of an exception from a chunk
};

struct weft_text {
  std::optional<std::string> value;
};

struct weft_registry {
  weft::Registrations registrations;
  std::string origin;  // "plugin NAME, PATH"
  std::string error;
};

namespace weft {

const weft_host& flat_host();

// Calls a function of a plugin. If the plugin refuses, returns its reason. If it fails or throws, throws a UserError
// made from `what` ("[rms_norm@mine] run") and `origin`.
template <class Function>
std::optional<std::string> call_plugin(const std::string& what, const std::string& origin, Function&& function);

// --- implementation ---

// Returns nothing if the status is WEFT_OK, the reason if it is WEFT_REFUSED; otherwise throws.
std::optional<std::string> judge(weft_status status, const char* message, const std::string& what,
                                 const std::string& origin);
[[noreturn]] void fail_thrown(const std::string& what, const std::string& origin, const std::string& said);

template <class Function>
std::optional<std::string> call_plugin(const std::string& what, const std::string& origin, Function&& function) {
  char text[1024] = "";
  weft_message message{text, sizeof text};
  weft_status status = WEFT_ERROR;
  try {
    status = function(&message);
  } catch (const std::exception& error) {
    fail_thrown(what, origin, error.what());
  } catch (...) {
    fail_thrown(what, origin, "");
  }
  text[sizeof text - 1] = '\0';
  return judge(status, text, what, origin);
}

}  // namespace weft
