#include "builtin/context.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "capi/handles.h"
#include "options/option_value.h"
#include "options/options_text.h"

namespace weft {
namespace {

// Checks the priority list of one op, which is empty or contains each provider once, and returns it.
std::vector<std::string> checked_priority(const Context& context, const std::string& op,
                                          std::vector<std::string> providers) {
  if (!providers.empty()) {
    Options checked;
    assign_priority(checked, op, providers);
  }
  context.check_priority(op, providers);
  return providers;
}

}  // namespace

Options options_of(weft_context& from) {
  const std::lock_guard lock(from.mutex);
  Options options = from.context->options;
  options.ir_op_priority = from.context->priorities.user();
  return options;
}

}  // namespace weft

extern "C" {

int weft_context_create(const weft_option* options, size_t option_count, weft_context** context, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_context_create";
    weft::given(context, name, "context") = nullptr;
    if (option_count > 0) weft::given(options, name, "options");
    weft::Options requested;
    for (size_t i = 0; i < option_count; ++i)
      weft::set_option(requested, weft::given_text(options[i].key, name, "key"),
                       weft::given_text(options[i].value, name, "value"), name);
    auto made = std::make_unique<weft_context>();
    const weft::WarningScope warnings(weft::sink_of(made->notes));
    weft::OpenedContext opened = weft::open_context(std::move(requested));
    made->context = std::move(opened.context);
    for (const std::string& note : opened.notes) made->notes->add(note);
    *context = made.release();
  });
}

void weft_context_destroy(weft_context* context) {
  if (context == nullptr) return;
  while (!context->scopes.empty()) context->scopes.pop_back();
  delete context;
}

int weft_context_notes(weft_context* context, char** text, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(text, "weft_context_notes", "text") = nullptr;
    weft::given(context, "weft_context_notes", "context");
    *text = weft::text_for_caller(context->notes->text());
  });
}

int weft_context_options(weft_context* context, char** json, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(json, "weft_context_options", "json") = nullptr;
    weft::given(context, "weft_context_options", "context");
    const std::lock_guard lock(context->mutex);
    weft::Options options = context->context->options;
    options.ir_op_priority = context->context->priorities.user();
    *json = weft::text_for_caller(weft::values_json(options));
  });
}

int weft_priority_set(weft_context* context, const char* op, const char* const* providers, size_t provider_count,
                      weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_priority_set";
    weft::given(context, name, "context");
    const std::string op_name = weft::given_text(op, name, "op");
    const std::lock_guard lock(context->mutex);
    weft::Context& target = *context->context;
    target.priorities.set(
        op_name,
        weft::checked_priority(target, op_name, weft::given_texts(providers, provider_count, name, "providers")));
  });
}

int weft_priority_push(weft_context* context, const char* op, const char* const* providers, size_t provider_count,
                       weft_priority_scope* scope, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_priority_push";
    weft::given(scope, name, "scope") = 0;
    weft::given(context, name, "context");
    const std::string op_name = weft::given_text(op, name, "op");
    const std::lock_guard lock(context->mutex);
    auto list = weft::checked_priority(*context->context, op_name,
                                       weft::given_texts(providers, provider_count, name, "providers"));
    context->scopes.reserve(context->scopes.size() + 1);
    context->scopes.emplace_back(context->last_scope + 1,
                                 std::make_unique<weft::PriorityScope>(*context->context, op_name, std::move(list)));
    *scope = ++context->last_scope;
  });
}

int weft_priority_pop(weft_context* context, weft_priority_scope scope, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(context, "weft_priority_pop", "context");
    const std::lock_guard lock(context->mutex);
    auto& scopes = context->scopes;
    USER_CHECK(!scopes.empty(), "[weft_priority_pop] there is no scope {}: none is open", scope);
    const bool is_open =
        std::any_of(scopes.begin(), scopes.end(), [&](const auto& open) { return open.first == scope; });
    USER_CHECK(is_open, "[weft_priority_pop] there is no scope {}: the newest is {}", scope, scopes.back().first);
    USER_CHECK(scopes.back().first == scope,
               "[weft_priority_pop] scope {} must not end before scope {}, which is newer", scope, scopes.back().first);
    scopes.pop_back();
  });
}

int weft_priority_list(weft_context* context, const char* op, char** text, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(text, "weft_priority_list", "text") = nullptr;
    weft::given(context, "weft_priority_list", "context");
    const std::string op_name = weft::given_text(op, "weft_priority_list", "op");
    const std::lock_guard lock(context->mutex);
    context->context->ops.at(op_name);
    *text = weft::text_for_caller(fmt::format("{}", fmt::join(context->context->priorities.list(op_name), ",")));
  });
}
}
