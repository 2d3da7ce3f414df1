#pragma once

// What stands behind the handles of weft.h.

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary.h"
#include "compiler/graph_program.h"
#include "engine/engine.h"

struct weft_context {
  std::mutex mutex;
  std::shared_ptr<weft::Context> context;
  std::vector<std::string> notes;
  std::vector<std::pair<weft_priority_scope, std::unique_ptr<weft::PriorityScope>>> scopes;  // newest last
  weft_priority_scope last_scope = 0;
};

struct weft_model {
  weft::Turns turns;
  std::unique_ptr<weft::Engine> engine;
};

struct weft_graph {
  weft::Turns turns;
  std::shared_ptr<weft::Context> context;
  std::shared_ptr<const weft::Graph> graph;  // as it was given
  std::unique_ptr<weft::GraphProgram> program;
};

namespace weft {

// The options and priorities as they are now. What is opened gets a Context of its own with them, and its own threads,
// so that neither waits for the other and nothing that happens to `from` later can be seen.
Options options_of(weft_context& from);

std::string selected_impls_json(const std::vector<const CompileRecord*>& records);

}  // namespace weft
