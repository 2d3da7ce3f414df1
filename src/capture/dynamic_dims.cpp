#include "capture/dynamic_dims.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace weft {
namespace {

const Shape* shape_of(const Leaf& leaf) {
  if (leaf.kind != Leaf::Kind::tensor || !leaf.value->meta().is_tensor()) return nullptr;
  return &leaf.value->meta().shape;
}

bool is_within(const std::vector<SymbolicDim>& dims, std::size_t leaf, std::size_t dim) {
  return std::any_of(dims.begin(), dims.end(),
                     [&](const SymbolicDim& known) { return known.leaf == leaf && known.dim == dim; });
}

// Hands out the symbols of one choice.
class Symbols {
 public:
  Symbols(std::vector<SymbolicDim> marked, std::span<const Leaf> leaves, std::int64_t usual_max, DynamicShapes shapes)
      : dims(std::move(marked)), usual_max_(usual_max), shapes_(shapes) {
    for (const SymbolicDim& known : dims) by_size_.emplace((*shape_of(leaves[known.leaf]))[known.dim].number(), known);
  }

  void add(std::size_t leaf, std::size_t dim, std::int64_t size) {
    if (size == 0 || is_within(dims, leaf, dim)) return;
    const auto known = by_size_.find(size);
    SymbolicDim symbolic{.leaf = leaf, .dim = dim, .shapes = shapes_};
    if (known != by_size_.end()) {
      symbolic.symbol = known->second.symbol;
      symbolic.bounds = known->second.bounds;
      symbolic.shapes = known->second.shapes;
    } else {
      symbolic.symbol = fresh_name();
      const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
      symbolic.bounds = {1, std::max(usual_max_, power)};
      by_size_.emplace(size, symbolic);
    }
    dims.push_back(std::move(symbolic));
  }

  std::vector<SymbolicDim> dims;

 private:
  std::string fresh_name() {
    for (int number = 0;; ++number) {
      std::string name = "s" + std::to_string(number);
      if (std::none_of(dims.begin(), dims.end(), [&](const SymbolicDim& known) { return known.symbol == name; }))
        return name;
    }
  }

  std::int64_t usual_max_;
  DynamicShapes shapes_;
  std::map<std::int64_t, SymbolicDim> by_size_;
};

// Dims may be marked with several names, but a graph has one symbol for its rows. The first choice keeps all names. The
// next one keeps only the first name, and the other dims become numbers; it is left out if any dim is unbacked. The
// last one keeps only unbacked dims, which may never become numbers.
std::vector<std::vector<SymbolicDim>> with_fewer_names(const std::vector<SymbolicDim>& marked) {
  const auto is_unbacked = [](const SymbolicDim& dim) { return dim.shapes == DynamicShapes::unbacked; };
  std::vector<std::vector<SymbolicDim>> choices{marked};
  if (std::all_of(marked.begin(), marked.end(), [&](auto& dim) { return dim.symbol == marked.front().symbol; }))
    return choices;
  const auto add_choice = [&](const auto& stays) {
    std::vector<SymbolicDim> choice;
    std::copy_if(marked.begin(), marked.end(), std::back_inserter(choice), stays);
    if (choice.size() < choices.back().size()) choices.push_back(std::move(choice));
  };
  if (std::none_of(marked.begin(), marked.end(), is_unbacked))
    add_choice([&](const SymbolicDim& dim) { return dim.symbol == marked.front().symbol; });
  add_choice(is_unbacked);
  return choices;
}

}  // namespace

void DynamicDims::mark(const std::string& argument, int dim, const DynamicDim& range, DynamicShapes shapes) {
  Dim::symbol(range.name);  // throws if this is not a name
  USER_CHECK(range.min >= 0 && range.min <= range.max, "[mark_dynamic] {} must have 0 <= min <= max, but is [{}, {}]",
             range.name, range.min, range.max);
  for (const Mark& mark : marks_)
    USER_CHECK(mark.argument != argument || mark.dim != dim,
               "[mark_dynamic] dim {} of argument {} is marked already, as {}", dim, argument, mark.symbol);
  const auto [known, is_new] = ranges_.emplace(range.name, Range{range, shapes});
  USER_CHECK(is_new || (known->second.min == range.min && known->second.max == range.max),
             "[mark_dynamic] {} must have one range, but is given [{}, {}] and [{}, {}]", range.name, known->second.min,
             known->second.max, range.min, range.max);
  USER_CHECK(known->second.shapes == shapes, "[mark_dynamic] {} must be backed or unbacked, but is marked as both",
             range.name);
  marks_.push_back({argument, dim, range.name});
}

std::vector<SymbolicDim> DynamicDims::marked(std::span<const Leaf> leaves, std::span<const std::string> names) const {
  std::vector<SymbolicDim> dims;
  for (const Mark& mark : marks_)
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      const Shape* shape = names[leaf] == mark.argument ? shape_of(leaves[leaf]) : nullptr;
      if (shape == nullptr) continue;
      const auto rank = static_cast<int>(shape->size());
      const int dim = mark.dim < 0 ? mark.dim + rank : mark.dim;
      if (dim < 0 || dim >= rank) continue;
      for (const SymbolicDim& known : dims)
        USER_CHECK(known.leaf != leaf || known.dim != static_cast<std::size_t>(dim),
                   "[mark_dynamic] dim {} of argument {} is marked twice, as {} and as {}", dim, mark.argument,
                   known.symbol, mark.symbol);
      const Range& range = ranges_.at(mark.symbol);
      dims.push_back({.leaf = leaf,
                      .dim = static_cast<std::size_t>(dim),
                      .symbol = mark.symbol,
                      .bounds = {std::max<std::int64_t>(range.min, 1), std::max<std::int64_t>(range.max, 1)},
                      .is_marked = true,
                      .shapes = range.shapes});
    }
  return dims;
}

void DynamicDims::check(std::span<const Leaf> leaves, std::span<const std::string> names,
                        const std::string& function) const {
  const std::vector<SymbolicDim> dims = marked(leaves, names);
  for (const Mark& mark : marks_)
    USER_CHECK(std::any_of(dims.begin(), dims.end(),
                           [&](const SymbolicDim& dim) {
                             return names[dim.leaf] == mark.argument && dim.symbol == mark.symbol;
                           }),
               "[{}] {} must be dim {} of argument {}, but there is no such tensor", function, mark.symbol, mark.dim,
               mark.argument);
  std::map<std::string, const SymbolicDim*> first;
  const auto size_of = [&](const SymbolicDim& dim) { return (*shape_of(leaves[dim.leaf]))[dim.dim].number(); };
  for (const SymbolicDim& dim : dims) {
    const DynamicDim& range = ranges_.at(dim.symbol);
    const std::int64_t size = size_of(dim);
    USER_CHECK(size >= range.min && size <= range.max, "[{}] {} must be in [{}, {}], but dim {} of argument {} is {}",
               function, dim.symbol, range.min, range.max, dim.dim, names[dim.leaf], size);
    const SymbolicDim& other = *first.emplace(dim.symbol, &dim).first->second;
    USER_CHECK(size_of(other) == size,
               "[{}] {} must be one size, but is {} in dim {} of argument {} and {} in dim {} of argument {}", function,
               dim.symbol, size_of(other), other.dim, names[other.leaf], size, dim.dim, names[dim.leaf]);
  }
}

void DynamicDims::note(std::span<const Leaf> leaves) {
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const Shape* shape = shape_of(leaves[leaf]);
    if (shape == nullptr || shape->empty()) continue;
    const std::int64_t rows = (*shape)[0].number();
    const auto [known, is_new] = seen_.emplace(leaf, rows);
    if (!is_new && known->second != rows) changed_.insert(leaf);
  }
}

std::vector<std::vector<SymbolicDim>> DynamicDims::choices(std::span<const Leaf> leaves,
                                                           std::span<const std::string> names, Dynamic dynamic,
                                                           std::int64_t usual_max, DynamicShapes shapes) const {
  const std::vector<SymbolicDim> always = marked(leaves, names);
  Symbols symbols(always, leaves, usual_max, shapes);
  for (std::size_t leaf = 0; leaf < leaves.size() && dynamic != Dynamic::no; ++leaf) {
    const Shape* shape = shape_of(leaves[leaf]);
    if (shape == nullptr || shape->empty()) continue;
    if (dynamic == Dynamic::yes || changed_.contains(leaf)) symbols.add(leaf, 0, (*shape)[0].number());
  }
  if (symbols.dims.size() == always.size()) return with_fewer_names(always);
  std::vector<std::vector<SymbolicDim>> choices{symbols.dims};
  // If a dim of a weight equals the number of rows, both have one symbol. The choice below then keeps only the rows of
  // the first tensor.
  const SymbolicDim& first = symbols.dims[always.size()];
  const auto add_choice = [&](const auto& belongs) {
    std::vector<SymbolicDim> choice;
    for (const SymbolicDim& dim : symbols.dims)
      if (dim.is_marked || belongs(dim)) choice.push_back(dim);
    if (choice.size() < choices.back().size()) choices.push_back(std::move(choice));
  };
  add_choice([&](const SymbolicDim& dim) { return dim.symbol == first.symbol; });
  add_choice([&](const SymbolicDim& dim) { return dim.leaf == first.leaf; });
  for (std::vector<SymbolicDim>& choice : with_fewer_names(always)) choices.push_back(std::move(choice));
  return choices;
}

}  // namespace weft
