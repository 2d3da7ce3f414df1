#include "io/jinja/functions.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/core.h>

#include "io/jinja/iteration.h"
#include "io/jinja/methods.h"
#include "io/jinja/printer.h"
#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

// The limit of Jinja's sandbox.
constexpr std::uint64_t kMaxRange = 100'000;

using FunctionBody = Value (*)(Runtime& runtime, const Arguments& arguments);

class Function : public Object {
 public:
  explicit Function(FunctionBody body) : body_(body) {}
  std::string type_name() const override { return "function"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override { return body_(runtime, arguments); }

 private:
  FunctionBody body_;
};

Value range(Runtime& runtime, const Arguments& arguments) {
  if (!arguments.named.empty()) fail_template("range() takes no keyword arguments");
  const auto values = bind_arguments("range", arguments, {"start", "stop", "step"}, 1);
  const auto integer = [](const Value* value) {
    if (!value->is_integral()) fail_template("'{}' object cannot be interpreted as an integer", type_name(*value));
    return value->integer();
  };
  const std::int64_t start = values[1] == nullptr ? 0 : integer(values[0]);
  const std::int64_t stop = integer(values[values[1] == nullptr ? 0 : 1]);
  const std::int64_t step = values[2] == nullptr ? 1 : integer(values[2]);
  if (step == 0) fail_template("range() arg 3 must not be zero");
  const bool empty = step > 0 ? start >= stop : start <= stop;
  const auto low = static_cast<std::uint64_t>(step > 0 ? start : stop);
  const auto high = static_cast<std::uint64_t>(step > 0 ? stop : start);
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = empty ? 0 : (high - low - 1) / stride + 1;
  if (count > kMaxRange) fail_template("Range too big. The sandbox blocks ranges larger than {}.", kMaxRange);
  std::vector<Value> items;
  for (std::uint64_t i = 0; i < count; ++i)
    items.push_back(Value::integer(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + i * static_cast<std::uint64_t>(step))));
  std::string label = values[2] != nullptr && step != 1 ? fmt::format("range({}, {}, {})", start, stop, step)
                                                        : fmt::format("range({}, {})", start, stop);
  return make_sequence(runtime.budget(), Kind::range, std::move(items), std::move(label));
}

// Returns the pairs of dict(mapping or pairs, name=value, ...), in order.
Dict collect_dict(Runtime& runtime, std::string_view callee, const Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) fail_template("{}() takes at most one mapping", callee);
  for (const Value& source : arguments.positional) {
    if (source.is_dict()) {
      for (const auto& [key, value] : source.dict().entries()) dict.set(key, value);
      continue;
    }
    const auto pairs = iterate(runtime.budget(), source);
    for (const Value& pair : *pairs) {
      const auto parts = iterate(runtime.budget(), pair);
      if (parts->size() != 2) fail_template("{}() needs pairs of a key and a value", callee);
      runtime.budget().step((*parts)[0].weight());
      dict.set((*parts)[0], (*parts)[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) dict.set(Value::string(name), value);
  return dict;
}

Value make_dict_of(Runtime& runtime, const Arguments& arguments) {
  return make_dict(runtime.budget(), collect_dict(runtime, "dict", arguments));
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  auto* made = runtime.make<Namespace>();
  const Value attributes = make_dict(runtime.budget(), collect_dict(runtime, "namespace", arguments));
  for (const auto& [key, value] : attributes.dict().entries())
    if (key.is_string()) made->set(key.text(), value);
  return Value::object(made);
}

// Returns its values one after another, and starts again after the last.
class Cycler : public Object {
 public:
  explicit Cycler(std::vector<Value> values) : values_(std::move(values)) {}
  std::string type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  Value next() {
    const Value& value = values_[place_];
    place_ = (place_ + 1) % values_.size();
    return value;
  }
  void reset() { place_ = 0; }

 private:
  std::vector<Value> values_;
  std::size_t place_ = 0;
};

class CyclerMethod : public Object {
 public:
  CyclerMethod(Cycler& cycler, bool resets) : cycler_(cycler), resets_(resets) {}
  std::string type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override {
    bind_arguments(resets_ ? "reset" : "next", arguments, {});
    if (!resets_) return cycler_.next();
    cycler_.reset();
    return Value::none();
  }

 private:
  Cycler& cycler_;
  bool resets_;
};

std::optional<Value> Cycler::attribute(Runtime& runtime, std::string_view name) {
  if (name == "current") return values_[place_];
  if (name != "next" && name != "reset") return std::nullopt;
  return Value::object(runtime.make<CyclerMethod>(*this, name == "reset"));
}

Value make_cycler(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) fail_template("at least one item has to be provided");
  return Value::object(runtime.make<Cycler>(arguments.positional));
}

// The first call returns an empty string, every later call the separator.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string type_name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override {
    bind_arguments("joiner", arguments, {});
    return std::exchange(used_, true) ? separator_ : Value::string("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value make_joiner(Runtime& runtime, const Arguments& arguments) {
  const auto values = bind_arguments("joiner", arguments, {"sep"});
  return Value::object(runtime.make<Joiner>(values[0] != nullptr ? *values[0] : Value::string(", ")));
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const auto values = bind_arguments("raise_exception", arguments, {"message"}, 1);
  throw TemplateRefusal(to_text(runtime.budget(), *values[0]));
}

// Formats one directive of strftime, such as "%d" or "%-d". A naive time of Python has no time zone.
std::string time_field(const std::string& directive, const std::tm& time, int microseconds) {
  if (directive.back() == 'f') return fmt::format("{:06}", microseconds);
  if (directive.back() == 'z' || directive.back() == 'Z') return "";
  char buffer[128];
  return {buffer, std::strftime(buffer, sizeof buffer, directive.c_str(), &time)};
}

Value format_now(Runtime& runtime, const Arguments& arguments) {
  const auto values = bind_arguments("strftime_now", arguments, {"format"}, 1);
  const std::string& format = text_argument("strftime_now", *values[0]);
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto whole = std::chrono::system_clock::from_time_t(seconds);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(now - whole).count();
  std::tm time{};
  if (localtime_r(&seconds, &time) == nullptr) fail_template("the time cannot be determined");
  constexpr std::string_view kDirectives = "%aAbBcCdDeFfgGhHIjmMnpRrSTtuUVwWxXyYzZ";
  std::string out;
  for (std::size_t position = 0; position < format.size(); ++position) {
    if (format[position] != '%') {
      out += format[position];
      continue;
    }
    std::string directive = "%";
    if (position + 1 < format.size() && format[position + 1] == '-') directive += format[++position];
    if (++position >= format.size() || kDirectives.find(format[position]) == std::string_view::npos)
      fail_template("unknown time format in {}", quote(std::string_view(format).substr(0, 100)));
    out += time_field(directive + format[position], time, static_cast<int>(rest));
    runtime.budget().check_text(out.size());
  }
  return make_string(runtime.budget(), std::move(out));
}

struct NamedFunction {
  std::string_view name;
  FunctionBody body;
};

constexpr NamedFunction kFunctions[] = {
    {"cycler", make_cycler},
    {"dict", make_dict_of},
    {"joiner", make_joiner},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"range", range},
    {"strftime_now", format_now},
};

}  // namespace

Value find_function(Runtime& runtime, std::string_view name) {
  const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [name](const NamedFunction& function) { return function.name == name; });
  if (found == std::end(kFunctions)) return {};
  return Value::object(runtime.make<Function>(found->body));
}

void Namespace::print(Printer& printer) const {
  printer.append("<Namespace {");
  std::string_view separator;
  for (const auto& [name, value] : attributes_.entries()) {
    printer.append(separator);
    printer.append_repr(name);
    printer.append(": ");
    printer.append_repr(value);
    separator = ", ";
  }
  printer.append("}>");
}

std::optional<Value> Namespace::attribute(Runtime&, std::string_view name) {
  const Value* found = attributes_.find(name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void Namespace::set(const std::string& name, Value value) {
  if (name.starts_with('_'))
    fail_template("a namespace cannot have the attribute {}, which begins with an underscore", quote(name));
  attributes_.set(Value::string(name), std::move(value));
}

}  // namespace weft::jinja
