#pragma once

// The paths of the API.

#include <span>
#include <string>
#include <string_view>

namespace weft {

enum class RouteKind {
  page,
  health,
  version,
  load,
  metrics,
  models,
  completions,
  chat,
  tokenize,
  detokenize,
  reset_prefix_cache,
  llama_completion,
  apply_template,
  props,
  slots,
  not_made,  // of others' servers, but not of this one
};

struct Route {
  std::string_view path;     // or its begin, if it ends in / and has more
  std::string_view methods;  // as in the field Allow; GET includes HEAD
  RouteKind kind;
  bool is_open = false;            // without a key
  bool is_for_developers = false;  // only with --enable-dev-endpoints; takes no body
};

// nullptr for a path that is not of the API.
const Route* find_route(std::string_view path);

bool allows(const Route& route, std::string_view method);

}  // namespace weft
