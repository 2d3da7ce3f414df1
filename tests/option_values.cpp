#include "tests/option_values.h"

#include <map>

#include <fmt/core.h>

#include "base/text.h"

namespace weft {

Words other_values(const OptionRow& row, const std::string& folder) {
  static const std::map<std::string_view, Words> kKnown = {{"logs", {"+passes,+lowering"}},
                                                           {"expect-fusions", {"all"}},
                                                           {"print-ir-after", {"all"}},
                                                           {"cc.inductor_compile_config", {"{}"}}};
  if (const auto known = kKnown.find(row.name); known != kKnown.end()) return known->second;
  const Options defaults;
  return std::visit(
      [&](auto member) -> Words {
        const auto& value = defaults.*member;
        using Type = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Type, bool>) return {value ? "false" : "true"};
        if constexpr (std::is_same_v<Type, OptionalFlag>) return {"true", "false"};
        if constexpr (std::is_same_v<Type, std::int64_t>) {
          const std::int64_t other = row.limits.least == value ? row.limits.least + 1 : row.limits.least;
          return other > row.limits.most ? Words() : Words{std::to_string(other)};
        }
        if constexpr (std::is_same_v<Type, Counts>) return {"1,5"};
        if constexpr (std::is_same_v<Type, std::string>) {
          if (row.limits.check != OptionCheck::one_of) return {fmt::format("{}/{}", folder, row.name)};
          Words words;
          for (const std::string& word : split_text(std::string(row.limits.words), ' '))
            if (!word.empty() && !word.starts_with(value)) words.push_back(word.substr(0, word.find('|')));
          return words;
        }
        return {};
      },
      row.member);
}

}  // namespace weft
