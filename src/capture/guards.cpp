#include "capture/guards.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

const Meta& meta_of(const Leaf& leaf) { return leaf.value->meta(); }

// Kind, dtype, rank, device, and whether the tensor is strided or packed: everything that fits in one number.
std::int64_t type_word(const Meta& meta) {
  const auto word =
      static_cast<std::uint64_t>(meta.kind) | static_cast<std::uint64_t>(meta.dtype) << 8 |
      static_cast<std::uint64_t>(meta.shape.size()) << 16 | static_cast<std::uint64_t>(!meta.strides.empty()) << 24 |
      static_cast<std::uint64_t>(!meta.packed.empty()) << 25 | static_cast<std::uint64_t>(meta.device.type) << 32 |
      static_cast<std::uint64_t>(static_cast<std::uint16_t>(meta.device.index)) << 40;
  return static_cast<std::int64_t>(word);
}

std::int64_t dim_of(std::span<const Leaf> leaves, std::size_t leaf, std::size_t dim) {
  return meta_of(leaves[leaf]).shape[dim].constant();
}

std::string type_text(const Meta& meta) {
  if (!meta.is_tensor()) return meta.text();
  return fmt::format("{} of rank {}{}{} on {}", dtype_text(meta.dtype), meta.rank(),
                     meta.strides.empty() ? "" : ", strided", meta.packed.empty() ? "" : ", packed",
                     device_text(meta.device));
}

std::string number_text(bool is_real, std::int64_t number) {
  return is_real ? float_text(std::bit_cast<double>(number)) : std::to_string(number);
}

}  // namespace

void GuardList::add_leaf(std::size_t leaf, const Leaf& example) {
  switch (example.kind) {
    case Leaf::Kind::absent:
      return add(Kind::absent, leaf);
    case Leaf::Kind::text:
      add(Kind::text, leaf, static_cast<std::int64_t>(texts_.size()));
      texts_.emplace_back(example.text);
      return;
    case Leaf::Kind::count:
      return add(Kind::count, leaf, example.number);
    case Leaf::Kind::integer:
      return add(Kind::integer, leaf, example.number);
    case Leaf::Kind::real:
      return add(Kind::real, leaf, example.number);
    case Leaf::Kind::tensor:
      break;
  }
  const Meta& meta = meta_of(example);
  add(Kind::type, leaf, type_word(meta));
  guards_.back().hi = static_cast<std::int64_t>(examples_.size());
  if (!meta.packed.empty()) add(Kind::packed, leaf, static_cast<std::int64_t>(examples_.size()));
  if (meta.kind == MetaKind::kv) add(Kind::kv, leaf, static_cast<std::int64_t>(examples_.size()));
  examples_.push_back(meta);
  for (std::size_t dim = 0; dim < meta.strides.size(); ++dim) {
    add(Kind::stride, leaf, meta.strides[dim].number());
    guards_.back().dim = static_cast<std::uint8_t>(dim);
  }
}

void GuardList::add_size(std::size_t leaf, std::size_t dim, std::int64_t size) {
  add(Kind::size, leaf, size);
  guards_.back().hi = size;
  guards_.back().dim = static_cast<std::uint8_t>(dim);
}

void GuardList::add_symbol(std::size_t leaf, std::size_t dim, const std::string& symbol, const Interval& bounds) {
  const auto known = std::find_if(symbols_.begin(), symbols_.end(), [&](const Symbol& s) { return s.name == symbol; });
  if (known != symbols_.end()) {
    add(Kind::same, leaf);
    guards_.back().other_leaf = known->leaf;
    guards_.back().other_dim = known->dim;
  } else {
    add(Kind::interval, leaf, bounds.lo);
    guards_.back().hi = bounds.hi;
    symbols_.push_back({symbol, static_cast<std::uint32_t>(leaf), static_cast<std::uint8_t>(dim)});
    values_.push_back(0);
  }
  guards_.back().dim = static_cast<std::uint8_t>(dim);
}

void GuardList::add_condition(const DimCondition& condition) {
  std::vector<std::string> names;
  for (const Symbol& symbol : symbols_) names.push_back(symbol.name);
  add(Kind::condition, 0, static_cast<std::int64_t>(conditions_.size()));
  conditions_.push_back({condition, SymbolicSize(condition.left, names), SymbolicSize(condition.right, names)});
}

bool GuardList::condition_holds(const Condition& condition, std::span<const Leaf> leaves) const {
  for (std::size_t i = 0; i < symbols_.size(); ++i) values_[i] = dim_of(leaves, symbols_[i].leaf, symbols_[i].dim);
  return DimCondition{condition.left.value(values_), condition.condition.relation, condition.right.value(values_)}
      .holds({});
}

// Kept small, so that the loop over the guards inlines the kinds that every tensor has.
inline bool GuardList::holds(const Guard& guard, std::span<const Leaf> leaves, const Leaf& leaf,
                             const Meta* meta) const {
  switch (guard.kind) {
    case Kind::type:
      return meta != nullptr && type_word(*meta) == guard.lo;
    case Kind::size:
    case Kind::interval: {
      const std::int64_t size = meta->shape[guard.dim].constant();
      return size >= guard.lo && size <= guard.hi;
    }
    case Kind::same:
      return meta->shape[guard.dim].constant() == dim_of(leaves, guard.other_leaf, guard.other_dim);
    case Kind::count:
    case Kind::integer:
    case Kind::real:
      return leaf.number == guard.lo;
    default:
      return holds_rarer(guard, leaves, leaf, meta);
  }
}

bool GuardList::holds_rarer(const Guard& guard, std::span<const Leaf> leaves, const Leaf& leaf,
                            const Meta* meta) const {
  const auto index = static_cast<std::size_t>(guard.lo);
  switch (guard.kind) {
    case Kind::absent:
      return leaf.kind == Leaf::Kind::absent;
    case Kind::packed:
      return meta->packed == examples_[index].packed;
    case Kind::kv:
      return meta->kv == examples_[index].kv;
    case Kind::stride:
      return meta->strides[guard.dim].constant() == guard.lo;
    case Kind::text:
      return leaf.text == texts_[index];
    case Kind::condition:
      return condition_holds(conditions_[index], leaves);
    default:
      CHECK(false, "a guard of kind {} has no test", static_cast<int>(guard.kind));
  }
}

std::size_t GuardList::first_that_fails(std::span<const Leaf> leaves) const {
  // The guards of a leaf are adjacent, its type first. Guards of its dims therefore know that it is a tensor.
  const Leaf* leaf = nullptr;
  const Meta* meta = nullptr;
  for (std::size_t i = 0; i < guards_.size(); ++i) {
    const Guard& guard = guards_[i];
    if (guard.leaf >= leaves.size()) return i;
    if (leaf != &leaves[guard.leaf]) {
      leaf = &leaves[guard.leaf];
      meta = leaf->kind == Leaf::Kind::tensor ? &meta_of(*leaf) : nullptr;
    }
    if (!holds(guard, leaves, *leaf, meta)) return i;
  }
  return guards_.size();
}

bool GuardList::hold(std::span<const Leaf> leaves) const { return first_that_fails(leaves) == guards_.size(); }

std::string GuardList::subject(const Guard& guard, std::span<const std::string> names) const {
  const auto place = [&](std::size_t leaf, std::size_t dim) {
    return fmt::format("argument {} dim {}", names[leaf], dim);
  };
  switch (guard.kind) {
    case Kind::condition:
      return conditions_[static_cast<std::size_t>(guard.lo)].condition.text();
    case Kind::size:
    case Kind::interval:
    case Kind::same:
      return place(guard.leaf, guard.dim);
    case Kind::stride:
      return fmt::format("argument {} stride {}", names[guard.leaf], guard.dim);
    case Kind::count:
      return fmt::format("the count of argument {}", names[guard.leaf]);
    default:
      return fmt::format("argument {}", names[guard.leaf]);
  }
}

std::string GuardList::wanted(const Guard& guard, std::span<const std::string> names) const {
  const auto example = [&]() -> const Meta& { return examples_[static_cast<std::size_t>(guard.lo)]; };
  switch (guard.kind) {
    case Kind::absent:
      return " is none";
    case Kind::type:
      return fmt::format(" is {}", type_text(examples_[static_cast<std::size_t>(guard.hi)]));
    case Kind::packed:
      return fmt::format(" is packed as {}", example().packed);
    case Kind::kv:
      return fmt::format(" is {}", example().text());
    case Kind::stride:
    case Kind::size:
      return fmt::format(" == {}", guard.lo);
    case Kind::interval:
      return fmt::format(" in [{}, {}]", guard.lo, guard.hi);
    case Kind::same:
      return fmt::format(" == argument {} dim {}", names[guard.other_leaf], guard.other_dim);
    case Kind::count:
    case Kind::integer:
    case Kind::real:
      return " == " + number_text(guard.kind == Kind::real, guard.lo);
    case Kind::text:
      return " == " + quote(texts_[static_cast<std::size_t>(guard.lo)]);
    case Kind::condition:
      break;
  }
  return "";
}

std::string GuardList::came(const Guard& guard, std::span<const Leaf> leaves) const {
  if (guard.kind == Kind::condition) {
    std::string text;
    for (const auto& [symbol, size] : bindings(leaves))
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", symbol, size);
    return text;
  }
  if (guard.leaf >= leaves.size()) return "nothing";
  const Leaf& leaf = leaves[guard.leaf];
  switch (guard.kind) {
    case Kind::absent:
      return "a tensor";
    case Kind::type:
      return leaf.kind == Leaf::Kind::tensor ? type_text(meta_of(leaf)) : "none";
    case Kind::stride:
      return meta_of(leaf).strides[guard.dim].text();
    case Kind::size:
    case Kind::interval:
    case Kind::same:
      return std::to_string(dim_of(leaves, guard.leaf, guard.dim));
    case Kind::count:
    case Kind::integer:
    case Kind::real:
      return number_text(guard.kind == Kind::real, leaf.number);
    case Kind::text:
      return quote(leaf.text);
    default:
      return meta_of(leaf).text();
  }
}

std::vector<std::string> GuardList::texts(std::span<const std::string> names) const {
  std::vector<std::string> texts;
  for (const Guard& guard : guards_) texts.push_back(subject(guard, names) + wanted(guard, names));
  return texts;
}

GuardList::Failure GuardList::first_failure(std::span<const Leaf> leaves, std::span<const std::string> names) const {
  const std::size_t first = first_that_fails(leaves);
  CHECK(first < guards_.size(), "the guards let these arguments in");
  const Guard& guard = guards_[first];
  return {subject(guard, names) + wanted(guard, names), came(guard, leaves), subject(guard, names)};
}

Bindings GuardList::bindings(std::span<const Leaf> leaves) const {
  Bindings bindings;
  for (const Symbol& symbol : symbols_) bindings[symbol.name] = dim_of(leaves, symbol.leaf, symbol.dim);
  return bindings;
}

GuardList make_guards(const Bounds& bounds, std::span<const SymbolicDim> dims, std::span<const Leaf> leaves,
                      bool is_whole) {
  GuardList guards;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const Leaf::Kind kind = leaves[leaf].kind;
    if (!is_whole && kind > Leaf::Kind::count) continue;
    guards.add_leaf(leaf, leaves[leaf]);
    if (kind != Leaf::Kind::tensor) continue;
    const Shape& shape = leaves[leaf].value->meta().shape;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      const auto symbolic = std::find_if(
          dims.begin(), dims.end(), [&](const SymbolicDim& known) { return known.leaf == leaf && known.dim == dim; });
      if (symbolic == dims.end()) {
        guards.add_size(leaf, dim, shape[dim].number());
      } else {
        guards.add_symbol(leaf, dim, symbolic->symbol, bounds.at(symbolic->symbol));
      }
    }
  }
  return guards;
}

}  // namespace weft
