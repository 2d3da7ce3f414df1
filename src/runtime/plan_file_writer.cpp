#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "base/byte_stream.h"
#include "runtime/plan_file.h"
#include "runtime/plan_file_form.h"

namespace weft {
namespace {

// Numbers for equal keys, from 0 in order of first use.
template <class Key>
class Numbering {
 public:
  // Calls `add` when the key is new.
  template <class Add>
  std::uint32_t of(const Key& key, Add&& add) {
    const auto [entry, is_new] = numbers_.emplace(key, static_cast<std::uint32_t>(numbers_.size()));
    if (is_new) add();
    return entry->second;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::map<Key, std::uint32_t> numbers_;
};

using StringPair = std::pair<std::uint32_t, std::uint32_t>;

// Each structure is decomposed into all its fields, so a new field does not compile until it is written and read.
class PlanWriter {
 public:
  std::vector<std::byte> run(const Plan& plan) {
    write(plan);
    ByteWriter file;
    file.raw(std::as_bytes(std::span(kPlanFileMark)));
    file.number(kPlanFileVersion);
    const auto table = [&](std::size_t count, const ByteWriter& entries) {
      file.count(count);
      file.raw(entries.bytes());
    };
    table(strings_.size(), string_entries_);
    table(dims_.size(), dim_entries_);
    table(types_.size(), type_entries_);
    table(kernels_.size(), kernel_entries_);
    file.raw(body_.bytes());
    return file.take();
  }

 private:
  template <class T>
  void list(const std::vector<T>& elements) {
    body_.count(elements.size());
    for (const T& element : elements) write(element);
  }

  void write(const Plan& plan) {
    const auto& [name, slots, inputs, steps, results, bounds, arena_bytes, unshared_bytes] = plan;
    write(name);
    body_.count(bounds.size());
    for (const auto& [symbol, interval] : bounds) {
      const auto& [lo, hi] = interval;
      write(symbol);
      body_.number(lo);
      body_.number(hi);
    }
    list(slots);
    list(inputs);
    list(steps);
    list(results);
    body_.number(arena_bytes);
    body_.number(unshared_bytes);
  }

  void write(const PlanSlot& slot) {
    const auto& [kind, name, key, meta, donated, scalar, bytes, offset, first_step, last_step] = slot;
    body_.number(static_cast<std::uint8_t>(kind));
    write(name);
    write(key);
    write(meta);
    body_.boolean(donated);
    write(bytes);
    body_.number(offset);
    write(first_step);
    write(last_step);
    if (kind == SlotKind::scalar) body_.number(std::bit_cast<std::uint32_t>(scalar));
  }

  void write(const PlanStep& step) {
    const auto& [op, kernel, attributes, operands, results, scratch_bytes, scratch_offset, piece, layer, is_splitting] =
        step;
    CHECK(kernel != nullptr, "the step {} has no kernel", op);
    write(op);
    write(*kernel);
    write(attributes);
    list(operands);
    list(results);
    write(scratch_bytes);
    body_.number(scratch_offset);
    write(piece);
    write(layer);
    body_.boolean(is_splitting);
  }

  void write(const PlanView& view) {
    const auto& [slot, version, byte_offset, meta] = view;
    write(slot);
    write(version);
    write(byte_offset);
    write(meta);
  }

  void write(const Attributes& attributes) {
    CHECK(attributes.entries().size() <= kMostAttributes, "{} attributes are too many", attributes.entries().size());
    body_.count(attributes.entries().size());
    for (const auto& [name, value] : attributes.entries()) {
      write(name);
      write(value);
    }
  }

  void write(const Attribute& attribute) {
    std::visit([&](const auto& value) { write_value(value); }, attribute.storage());
  }

  void write_value(std::monostate) { write(AttributeTag::none); }
  void write_value(bool value) {
    write(AttributeTag::boolean);
    body_.boolean(value);
  }
  void write_value(const Dim& value) {
    write(AttributeTag::dim);
    write(value);
  }
  void write_value(double value) {
    write(AttributeTag::real);
    body_.real(value);
  }
  void write_value(const std::string& value) {
    write(AttributeTag::string);
    write(value);
  }
  void write_value(DType value) {
    write(AttributeTag::dtype);
    write(std::string(dtype_text(value)));
  }
  void write_value(const EnumWord& value) {
    write(AttributeTag::word);
    write(value.word);
  }
  void write_value(const AttributeList& values) {
    CHECK(++list_depth_ <= kMostListDepth, "lists nest more than {} deep", kMostListDepth);
    write(AttributeTag::list);
    list(values);
    --list_depth_;
  }

  void write(AttributeTag tag) { body_.number(static_cast<std::uint8_t>(tag)); }
  void write(int number) { body_.number(std::int32_t{number}); }
  void write(const std::string& text) { body_.number(string(text)); }

  void write(const Dim& dim) {
    const std::string text = dim.text();
    body_.number(dims_.of(text, [&] {
      CHECK(dim_of_entry(text) == dim, "the dim {} does not read back", text);
      dim_entries_.number(string(text));
    }));
  }

  void write(const Meta& meta) {
    const std::string text = meta.text(), device = device_text(meta.device);
    const StringPair key = {string(text), string(device)};
    const std::uint32_t number = types_.of(key, [&] {
      type_entries_.number(key.first);
      type_entries_.number(key.second);
      metas_.push_back(type_of_entry(text, device));
    });
    CHECK(metas_[number] == meta, "the type {} on {} does not read back", text, device);
    body_.number(number);
  }

  void write(const Kernel& kernel) {
    const StringPair key = {string(kernel.op), string(kernel.provider)};
    body_.number(kernels_.of(key, [&] {
      kernel_entries_.number(key.first);
      kernel_entries_.number(key.second);
    }));
  }

  std::uint32_t string(const std::string& text) {
    return strings_.of(text, [&] { string_entries_.text(text); });
  }

  Numbering<std::string> strings_, dims_;  // both by text
  Numbering<StringPair> types_, kernels_;
  std::vector<Meta> metas_;  // by number of the type
  ByteWriter string_entries_, dim_entries_, type_entries_, kernel_entries_, body_;
  int list_depth_ = 0;
};

}  // namespace

std::vector<std::byte> plan_bytes(const Plan& plan) { return PlanWriter().run(plan); }

}  // namespace weft
