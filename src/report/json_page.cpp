#include "report/json_page.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/markup.h"

namespace weft {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
pre, td, th { font: 13px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; }
details { border-top: 1px solid #8886; padding: .4rem 0; }
summary { cursor: pointer; font-weight: 600; }
table { border-collapse: collapse; margin: .4rem 0; display: block; overflow-x: auto; }
td, th { border: 1px solid #8886; padding: .15rem .5rem; text-align: left; vertical-align: top; }
td.number { text-align: right; }
.none { opacity: .6; }
)";

// A key as a heading: `written_out` is "written out".
std::string heading(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return escape_markup(key);
}

void add_value(const Json& value, std::string& html);

void add_cell(const Json& value, std::string& html) {
  html += value.is_number() ? "<td class=number>" : "<td>";
  add_value(value, html);
  html += "</td>";
}

void add_object(const Json& object, std::string& html) {
  html += "<table>";
  for (const auto& [key, value] : object.items()) {
    html += "<tr><th>" + heading(key) + "</th>";
    add_cell(value, html);
    html += "</tr>\n";
  }
  html += "</table>";
}

bool is_list_of_objects(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_object(); });
}

// The keys of all objects of a list, each once, in the order in which they come.
std::vector<std::string> keys_of(const Json& list) {
  std::vector<std::string> keys;
  for (const Json& object : list)
    for (const auto& [key, value] : object.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  return keys;
}

void add_table(const Json& list, std::string& html) {
  const std::vector<std::string> keys = keys_of(list);
  html += "<table><tr>";
  for (const std::string& key : keys) html += "<th>" + heading(key) + "</th>";
  html += "</tr>\n";
  for (const Json& object : list) {
    html += "<tr>";
    for (const std::string& key : keys) add_cell(object.contains(key) ? object[key] : Json(nullptr), html);
    html += "</tr>\n";
  }
  html += "</table>";
}

void add_list(const Json& list, std::string& html) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) html += ", ";
    add_value(list[i], html);
  }
}

void add_value(const Json& value, std::string& html) {
  if (value.is_null() || ((value.is_array() || value.is_object()) && value.empty())) {
    html += "<span class=none>none</span>";
  } else if (is_list_of_objects(value)) {
    add_table(value, html);
  } else if (value.is_array()) {
    add_list(value, html);
  } else if (value.is_object()) {
    add_object(value, html);
  } else {
    html += escape_markup(value.is_string() ? value.get<std::string>() : json_text(value));
  }
}

}  // namespace

std::string json_page(const std::string& title, const std::string& text, const Json& object) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n<h1>{0}</h1>\n<pre>{2}</pre>\n",
      escape_markup(title), kStyle, escape_markup(text));
  for (const auto& [key, value] : object.items()) {
    html += fmt::format("<details id=\"{}\"><summary>{}", escape_markup(key), heading(key));
    if (value.is_array()) html += fmt::format(" ({})", value.size());
    html += "</summary>\n";
    add_value(value, html);
    html += "</details>\n";
  }
  return html + "</html>\n";
}

}  // namespace weft
