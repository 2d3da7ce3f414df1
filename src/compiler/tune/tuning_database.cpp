#include "compiler/tune/tuning_database.h"

#include <algorithm>
#include <tuple>

#include <fmt/ranges.h>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "base/version.h"
#include "kernels/provider.h"
#include "tensor/attribute_parser.h"
#include "tensor/meta_parser.h"

namespace weft {
namespace {

constexpr int kFormatVersion = 1;
constexpr std::size_t kMostBytes = 64u << 20;
constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 50;  // half a month
constexpr std::string_view kCheck = ",\"check\":\"";

// The line with its hash; `text` is an object of at least one member.
std::string sealed(std::string text) {
  text.pop_back();
  const std::string hash = hash_bytes(text).hex();
  return text + std::string(kCheck) + hash + "\"}\n";
}

Json json_of(const Fingerprint& fingerprint) {
  return {{"cpu", fingerprint.cpu},
          {"host", fingerprint.host},
          {"features", fingerprint.features},
          {"threads", fingerprint.threads},
          {"versions", fingerprint.versions}};
}

std::string line_of(const TuningEntry& entry) {
  Json operands = Json::array(), times = Json::array(), attributes = Json::object();
  for (const std::optional<Meta>& operand : entry.call.operands)
    operands.push_back(operand ? Json(operand->text()) : Json(nullptr));
  for (const auto& [name, value] : entry.call.attributes.entries()) attributes[name] = value.text();
  for (const TunedTime& time : entry.times)
    times.push_back({{"provider", time.provider}, {"packing", time.packing}, {"nanoseconds", time.nanoseconds}});
  const Json line{{"op", entry.op},
                  {"operands", operands},
                  {"attributes", attributes},
                  {"weight", entry.weight < 0 ? Json(nullptr) : Json(entry.weight)},
                  {"range", {entry.call.range.lo, entry.call.range.hi}},
                  {"rows", entry.rows},
                  {"measured", entry.measured},
                  {"standard", entry.standard},
                  {"times", times},
                  {"order", tuned_order(entry.standard, entry.times)}};
  return sealed(json_ascii(line));
}

// One line while it is read: every access says which member it missed.
class Line {
 public:
  Line(std::string_view text, const std::string& source, std::size_t number)
      : where_(fmt::format("{}:{}", source, number)) {
    constexpr std::size_t kHashDigits = 32;
    const std::size_t tail = kCheck.size() + kHashDigits + 2;
    const std::string_view before = text.substr(0, text.size() - std::min(tail, text.size()));
    USER_CHECK(before.size() + tail == text.size() && text.substr(before.size()).starts_with(kCheck) &&
                   text.ends_with("\"}") &&
                   text.substr(before.size() + kCheck.size(), kHashDigits) == hash_bytes(before).hex(),
               "[{}] is not a line that weft tune wrote: it was cut short or edited", where_);
    json_ = parse_json(std::string(before) + "}");
    check(json_.is_object(), "an object");
  }

  void check(bool holds, std::string_view wanted) const {
    USER_CHECK(holds, "[{}] wanted {}, which is not there: weft tune does not write such a line", where_, wanted);
  }
  const Json& at(const char* name) const { return member(json_, name); }
  const Json& member(const Json& object, const char* name) const {
    check(object.is_object() && object.contains(name), name);
    return object.at(name);
  }
  std::string text(const Json& json, const char* what) const {
    check(json.is_string(), what);
    return json.get<std::string>();
  }
  std::int64_t number(const Json& json, const char* what, std::int64_t least = 0,
                      std::int64_t most = kMostNanoseconds) const {
    check(json.is_number_integer(), what);
    const bool is_huge = json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t(INT64_MAX);
    check(!is_huge && json.get<std::int64_t>() >= least && json.get<std::int64_t>() <= most, what);
    return json.get<std::int64_t>();
  }
  std::vector<std::int64_t> numbers(const Json& json, const char* what, std::int64_t least = 0) const {
    check(json.is_array(), what);
    std::vector<std::int64_t> list;
    for (const Json& item : json) list.push_back(number(item, what, least));
    return list;
  }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  Json json_;
};

Fingerprint read_fingerprint(const Line& line) {
  const Json& json = line.at("fingerprint");
  Fingerprint fingerprint{.cpu = line.text(line.member(json, "cpu"), "cpu"),
                          .host = line.text(line.member(json, "host"), "host"),
                          .features = line.text(line.member(json, "features"), "features"),
                          .threads = line.number(line.member(json, "threads"), "threads", 1)};
  const Json& versions = line.member(json, "versions");
  line.check(versions.is_object(), "versions");
  for (const auto& [name, version] : versions.items()) fingerprint.versions[name] = line.text(version, "a version");
  return fingerprint;
}

void read_types(const Line& line, TuningEntry& entry) {
  const Json& operands = line.at("operands");
  line.check(operands.is_array() && !operands.empty(), "operands");
  const Json& attributes = line.at("attributes");
  line.check(attributes.is_object(), "attributes");
  try {
    for (const Json& operand : operands) {
      entry.call.operands.emplace_back();
      if (!operand.is_null()) entry.call.operands.back() = parse_meta(line.text(operand, "an operand"));
    }
    for (const auto& [name, value] : attributes.items())
      entry.call.attributes.set(name, parse_attribute(line.text(value, "an attribute")));
  } catch (const UserError& error) {
    fail_user("[{}] {}", line.where(), error.what());
  }
}

void read_call(const Line& line, TuningEntry& entry) {
  read_types(line, entry);
  const std::vector<std::int64_t> range = line.numbers(line.at("range"), "range");
  line.check(range.size() == 2 && range[0] >= 1 && range[1] >= range[0], "a range");
  entry.call.range = {range[0], range[1]};
  if (const Json& weight = line.at("weight"); !weight.is_null())
    entry.weight =
        static_cast<int>(line.number(weight, "weight", 0, static_cast<std::int64_t>(entry.call.operands.size()) - 1));
  line.check(entry.weight < 0 || entry.call.operands[static_cast<std::size_t>(entry.weight)], "a weight");
}

TunedTime read_time(const Line& line, const Json& json, std::size_t sizes) {
  TunedTime time{.provider = line.text(line.member(json, "provider"), "provider"),
                 .packing = line.text(line.member(json, "packing"), "packing")};
  const Json& all = line.member(json, "nanoseconds");
  line.check(all.is_array() && all.size() == sizes, "times of every size");
  for (const Json& rounds : all) {
    time.nanoseconds.push_back(line.numbers(rounds, "nanoseconds", 1));
    line.check(time.nanoseconds.back().size() == kTuningRounds, "a time of every round");
  }
  return time;
}

TuningEntry read_entry(const Line& line) {
  TuningEntry entry;
  entry.op = line.text(line.at("op"), "op");
  read_call(line, entry);
  entry.rows = line.numbers(line.at("rows"), "rows");
  line.check(!entry.rows.empty() && entry.rows.size() <= 2, "rows");
  entry.measured = line.number(line.at("measured"), "measured");
  entry.standard = line.text(line.at("standard"), "standard");
  const Json& times = line.at("times");
  line.check(times.is_array() && !times.empty(), "times");
  for (const Json& time : times) entry.times.push_back(read_time(line, time, entry.rows.size()));
  line.check(entry.times[0].provider == entry.standard, "the standard provider's times first");
  std::vector<std::string> order;
  line.check(line.at("order").is_array(), "order");
  for (const Json& provider : line.at("order")) order.push_back(line.text(provider, "order"));
  line.check(order == tuned_order(entry.standard, entry.times), "the order that follows from the times");
  return entry;
}

}  // namespace

Fingerprint fingerprint_of(const DeviceDescription& device) {
  Fingerprint fingerprint{.cpu = device.name,
                          .host = cpu_features_text(device.host),
                          .features = cpu_features_text(device.features),
                          .threads = device.threads,
                          .versions = {{"weft", kVersion}}};
  for (const ProviderEntry& provider : provider_table())
    if (*provider.absent == '\0' && provider.version != nullptr)
      fingerprint.versions[provider.name] = provider.version();
  return fingerprint;
}

std::string TuningEntry::key() const {
  std::string text = op + "(";
  for (const std::optional<Meta>& operand : call.operands) text += (operand ? operand->text() : "none") + ", ";
  for (const auto& [name, value] : call.attributes.entries()) text += name + "=" + value.text() + ", ";
  text.resize(text.size() - 2);
  return text + fmt::format("), {}-{} rows", call.range.lo, call.range.hi);
}

const TunedTime* TuningEntry::find(const std::string& provider) const {
  const auto found =
      std::find_if(times.begin(), times.end(), [&](const TunedTime& time) { return time.provider == provider; });
  return found == times.end() ? nullptr : &*found;
}

void TuningDatabase::add(TuningEntry entry) {
  TuningEntry& known = entries.try_emplace(entry.key(), entry).first->second;
  if (std::tuple(entry.measured, line_of(entry)) > std::tuple(known.measured, line_of(known))) known = std::move(entry);
}

std::string TuningDatabase::text() const {
  const Json header{
      {"weft_tuning", kFormatVersion}, {"fingerprint", json_of(fingerprint)}, {"entries", entries.size()}};
  std::string text = sealed(json_ascii(header));
  for (const auto& [key, entry] : entries) text += line_of(entry);
  return text;
}

TuningDatabase parse_tuning(std::string_view text, const std::string& source) {
  USER_CHECK(text.ends_with('\n'),
             "[{}] does not end with a whole line: it was cut short, or weft tune did not make it", source);
  TuningDatabase database;
  std::int64_t wanted = 0;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const Line line(text.substr(0, end), source, ++number);
    text.remove_prefix(end + 1);
    if (number == 1) {
      const std::int64_t version = line.number(line.at("weft_tuning"), "a version of the format");
      USER_CHECK(version == kFormatVersion, "[{}] is of version {} of the format, but this program reads version {}",
                 line.where(), version, kFormatVersion);
      database.fingerprint = read_fingerprint(line);
      wanted = line.number(line.at("entries"), "entries");
      continue;
    }
    TuningEntry entry = read_entry(line);
    const std::string key = entry.key();
    USER_CHECK(database.entries.emplace(key, std::move(entry)).second, "[{}] is there twice: {}", line.where(), key);
  }
  USER_CHECK(static_cast<std::int64_t>(database.entries.size()) == wanted,
             "[{}] wanted {} entries, but has {}: it was cut short or edited", source, wanted, database.entries.size());
  return database;
}

TuningDatabase read_tuning(const std::string& path, const Fingerprint& own) {
  TuningDatabase database = parse_tuning(read_file(path, kMostBytes), path);
  USER_CHECK(database.fingerprint == own,
             "[{}] was measured elsewhere, and times do not carry over: on {}, but this is {}; make one here with: "
             "weft tune MODEL -o FILE",
             path, json_ascii(json_of(database.fingerprint)), json_ascii(json_of(own)));
  return database;
}

TuningDatabase merge_tuning(const TuningDatabase& a, const TuningDatabase& b) {
  USER_CHECK(a.fingerprint == b.fingerprint,
             "[tune merge] wanted databases of one machine, but one is of {} and the other of {}",
             json_ascii(json_of(a.fingerprint)), json_ascii(json_of(b.fingerprint)));
  TuningDatabase merged = a;
  for (const auto& [key, entry] : b.entries) merged.add(entry);
  return merged;
}

}  // namespace weft
