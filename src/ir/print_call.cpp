#include "ir/print_call.h"

namespace weft {
namespace {

constexpr std::size_t kLineWidth = 120;

}  // namespace

std::vector<std::string> attribute_texts(const Op* op, const Attributes& attributes) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : attributes.entries()) {
    const int index = op == nullptr ? -1 : op->schema.parameter_index(key);
    if (index >= 0 && op->schema.parameters[static_cast<std::size_t>(index)].default_value == value) continue;
    texts.push_back(key + "=" + value.text());
  }
  return texts;
}

std::size_t shown_operands(const Op* op, const std::vector<bool>& present) {
  std::size_t count = present.size();
  if (op == nullptr) return count;
  while (count > 0 && !present[count - 1] && count <= op->schema.tensor_count() &&
         op->schema.parameters[count - 1].default_value.has_value())
    --count;
  return count;
}

std::string bracketed(const std::vector<std::string>& parts) {
  std::string line = "(" + joined(parts);
  if (line.size() <= kLineWidth) return line + ")";
  std::string lines = "(";
  for (std::size_t i = 0; i < parts.size(); ++i) lines += (i > 0 ? ",\n    " : "\n    ") + parts[i];
  return lines + ")";
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i > 0 ? ", " : "") + parts[i];
  return text;
}

}  // namespace weft
