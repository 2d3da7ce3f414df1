#pragma once

// The paths of the API.

#include <span>
#include <string>
#include <string_view>

#include "server/api_request.h"

namespace weft {

enum class RouteKind {
  page,
  health,
  version,
  load,
  metrics,
  models,
  request,  // with the fields of an endpoint
  reset_prefix_cache,
  props,
  slots,
  tokenizer_info,
  lora_adapters,  // of llama.cpp
  not_made,       // of others' servers, but not of this one
};

struct Route {
  std::string_view path;     // or its begin, if it ends in / and has more
  std::string_view methods;  // as in the field Allow; GET includes HEAD
  RouteKind kind;
  bool is_open = false;             // without a key
  bool is_for_developers = false;   // only with --enable-dev-endpoints; takes no body
  Endpoint endpoint = completions;  // of a request, and whose errors a path has
};

// nullptr for a path that is not of the API.
const Route* find_route(std::string_view path);

// For a message about a path that is none: ", did you mean /v1/..?" where it lacks /v1 or has too much, else "".
std::string path_suggestion(std::string_view path);

bool allows(const Route& route, std::string_view method);

// Values of labels of metrics. What clients may send at will is one value, so that they cannot make new samples without
// end.
std::string handler_label(const Route* route);  // nullptr: no path of ours
std::string method_label(const std::string& method);

}  // namespace weft
