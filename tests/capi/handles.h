#pragma once

// Handles of the C interface with scoped lifetime, and helpers of the tests.

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capi/weft.h"

namespace weft {

using OptionPairs = std::vector<std::pair<std::string, std::string>>;

class OwnedContext {
 public:
  // Two threads, unless the options say otherwise.
  explicit OwnedContext(const OptionPairs& given = {}) {
    std::vector<weft_option> options{{"threads", "2"}};
    for (const auto& [key, value] : given) options.push_back({key.c_str(), value.c_str()});
    weft_error error;
    EXPECT_EQ(weft_context_create(options.data(), options.size(), &context_, &error), WEFT_SUCCESS) << error.text;
  }
  ~OwnedContext() { end(); }
  OwnedContext(const OwnedContext&) = delete;
  OwnedContext& operator=(const OwnedContext&) = delete;

  void end() { weft_context_destroy(std::exchange(context_, nullptr)); }
  operator weft_context*() const { return context_; }

 private:
  weft_context* context_ = nullptr;
};

class OwnedModel {
 public:
  OwnedModel(weft_context* context, const std::string& path) {
    weft_error error;
    EXPECT_EQ(weft_model_open(context, path.c_str(), &model_, &error), WEFT_SUCCESS) << error.text;
  }
  ~OwnedModel() { weft_model_close(model_, nullptr); }
  OwnedModel(const OwnedModel&) = delete;
  OwnedModel& operator=(const OwnedModel&) = delete;

  operator weft_model*() const { return model_; }

 private:
  weft_model* model_ = nullptr;
};

class OwnedGraph {
 public:
  OwnedGraph(weft_context* context, const std::string& text) {
    weft_error error;
    EXPECT_EQ(weft_graph_compile(context, text.c_str(), &graph_, &error), WEFT_SUCCESS) << error.text;
  }
  ~OwnedGraph() { weft_graph_close(graph_, nullptr); }
  OwnedGraph(const OwnedGraph&) = delete;
  OwnedGraph& operator=(const OwnedGraph&) = delete;

  operator weft_graph*() const { return graph_; }

 private:
  weft_graph* graph_ = nullptr;
};

// The text that a function returns, e.g. text_of(weft_priority_list, context, "rms_norm").
template <class Function, class... Arguments>
std::string text_of(Function function, Arguments... arguments) {
  char* text = nullptr;
  weft_error error;
  EXPECT_EQ(function(arguments..., &text, &error), WEFT_SUCCESS) << error.text;
  std::string copy = text == nullptr ? "" : text;
  weft_text_free(text);
  return copy;
}

template <class Handle>
nlohmann::json json_of(int (*function)(Handle*, char**, weft_error*), Handle* handle) {
  return nlohmann::json::parse(text_of(function, handle));
}

// "" if the call failed with a user's error that names all parts, else what happened. The call is a lambda that takes
// the weft_error*.
template <class Call>
std::string breach_of_user_error(Call&& call, const std::vector<std::string>& parts) {
  weft_error error;
  const int status = call(&error);
  const std::string came = "status " + std::to_string(status) + ", [" + error.text + "]";
  if (status != WEFT_USER_ERROR || error.status != status) return came;
  for (const std::string& part : parts)
    if (std::string(error.text).find(part) == std::string::npos) return "lacks " + part + ": " + came;
  return "";
}

}  // namespace weft
