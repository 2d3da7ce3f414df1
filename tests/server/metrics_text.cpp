#include "tests/server/metrics_text.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <regex>

#include "base/text.h"

namespace weft {
namespace {

// The family of a sample's name, if its type allows the name.
std::optional<std::string> family_of(const MetricsText& read, const std::string& name) {
  if (const auto found = read.types.find(name); found != read.types.end() && found->second != "histogram") return name;
  for (const std::string suffix : {"_bucket", "_count", "_sum"}) {
    if (!name.ends_with(suffix)) continue;
    const std::string family = name.substr(0, name.size() - suffix.size());
    if (const auto found = read.types.find(family); found != read.types.end() && found->second == "histogram")
      return family;
  }
  return std::nullopt;
}

// Buckets do not decrease, end with +Inf, and the last one is the count.
struct OpenHistogram {
  std::string labels;  // without le
  double bound = -INFINITY, count = 0;
  bool is_ended = true;
};

std::string take_bucket(OpenHistogram& open, const std::string& series, double bound, double count) {
  if (open.is_ended || open.labels != series) open = {.labels = series, .is_ended = false};
  const bool grows = bound > open.bound && count >= open.count;
  open.bound = bound;
  open.count = count;
  open.is_ended = std::isinf(bound);
  return grows ? "" : "a bucket does not follow the one before";
}

double number_of(const std::string& text) {
  if (text == "+Inf") return INFINITY;
  return std::strtod(text.c_str(), nullptr);
}

}  // namespace

MetricsText read_metrics(const std::string& text) {
  static const std::regex kSample(R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|\+Inf))re");
  static const std::regex kLabels(
      R"re(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"(?:,(?=[a-zA-Z_])|(?=\})))+\})re");
  static const std::regex kBound(R"re((.*),?le="([^"]*)"\})re");
  MetricsText read;
  std::string helped, family_now;
  OpenHistogram open;
  if (!text.ends_with('\n')) read.breaches.emplace_back("the text does not end with a line feed");
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
    const std::string line = text.substr(begin, end - begin);
    const auto breach = [&](const std::string& what) { read.breaches.push_back(what + ": " + line); };
    if (line.starts_with("# HELP ")) {
      helped = line.substr(7, line.find(' ', 7) - 7);
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      const std::vector<std::string> words = split_text(line.substr(7), ' ');
      if (words.size() != 2 || words[0] != helped) breach("a type without its help before it");
      if (!read.types.emplace(words[0], words.back()).second) breach("a second type");
      family_now = words[0];
      continue;
    }
    std::smatch found;
    if (!std::regex_match(line, found, kSample)) {
      breach("no sample");
      continue;
    }
    const std::string name = found[1], labels = found[2];
    const double value = number_of(found[3]);
    if (!labels.empty() && !std::regex_match(labels, kLabels)) breach("wrong labels");
    if (family_of(read, name) != family_now) breach("a sample outside its family");
    if (!read.samples.emplace(name + labels, value).second) breach("a sample that was there");
    if (read.types[family_now] == "counter" && !name.ends_with("_total")) breach("a counter without _total");
    std::smatch bound;
    if (name.ends_with("_bucket") && std::regex_match(labels, bound, kBound)) {
      const std::string wrong = take_bucket(open, name + bound[1].str(), number_of(bound[2]), value);
      if (!wrong.empty()) breach(wrong);
    } else if (name.ends_with("_count") && (!open.is_ended || value != open.count)) {
      breach("a count that is not that of the last bucket");
    }
  }
  return read;
}

}  // namespace weft
