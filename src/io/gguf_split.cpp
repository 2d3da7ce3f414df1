#include "io/gguf_split.h"

#include <fmt/core.h>

#include "base/error.h"

namespace weft {
namespace {

// Part numbers in names have five digits.
constexpr std::int64_t kMostParts = 99999;

std::string part_suffix(std::int64_t index, std::int64_t count) {
  return fmt::format("-{:05d}-of-{:05d}.gguf", index + 1, count);
}

}  // namespace

std::vector<std::string> gguf_part_names(const Gguf& part, std::string_view name) {
  const std::int64_t count = part.find_integer("split.count").value_or(1);
  USER_CHECK(count >= 0 && count <= kMostParts, "[{}] split.count must be at most {}, but is {}", part.where(),
             kMostParts, count);
  if (count <= 1) return {std::string(name)};
  const std::int64_t own = part.integer("split.no");
  USER_CHECK(own >= 0 && own < count, "[{}] split.no must be from 0 to {}, but is {}", part.where(), count - 1, own);
  const std::string suffix = part_suffix(own, count);
  USER_CHECK(name.ends_with(suffix),
             "[{}] is part {} of {}, and its name must end in {} so that the other parts are found by theirs",
             part.where(), own + 1, count, suffix);
  name.remove_suffix(suffix.size());
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::string(name) + part_suffix(i, count));
  return names;
}

void check_gguf_part(const Gguf& part, std::size_t index, std::size_t count) {
  const std::int64_t own = part.integer("split.no"), all = part.integer("split.count");
  USER_CHECK(own == static_cast<std::int64_t>(index) && all == static_cast<std::int64_t>(count),
             "[{}] wanted part {} of {}, but it is part {} of {} by its keys split.no and split.count", part.where(),
             index + 1, count, own + 1, all);
}

void check_gguf_part_tensors(const Gguf& first, std::size_t tensors) {
  const auto wanted = first.find_integer("split.tensors.count");
  USER_CHECK(!wanted || *wanted == static_cast<std::int64_t>(tensors),
             "[{}] split.tensors.count wants {} tensors in all parts, but there are {}", first.where(), *wanted,
             tensors);
}

}  // namespace weft
