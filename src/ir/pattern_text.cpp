// Prints a pattern: display() with the author's names, canonical() with fixed ones.

#include "base/error.h"
#include "ir/pattern.h"
#include "ir/print_call.h"

namespace weft {
namespace {

class PatternPrinter {
 public:
  PatternPrinter(const Pattern& pattern, bool canonical) : pattern_(pattern), canonical_(canonical) {
    for (const Wildcard& wildcard : pattern.wildcards) {
      std::string name = canonical ? "w" + std::to_string(names_.size()) : wildcard.name;
      symbols_.emplace("?" + wildcard.name, Dim::symbol("?" + name));
      names_.emplace(wildcard.name, std::move(name));
    }
  }

  std::string text() const {
    std::string out = "pattern " + (canonical_ ? "p" : pattern_.name) + bracketed(declarations()) + where() + " {\n";
    return out + body("before", pattern_.before) + body("after", pattern_.after) + "}\n";
  }

 private:
  std::string name_of(const Wildcard& wildcard) const { return "?" + names_.at(wildcard.name); }
  std::string type_text(const PatternType& type) const { return type.renamed(names_).text(); }

  std::vector<std::string> declarations() const {
    const std::set<std::string> by_types = pattern_.declared_by_types();
    std::vector<std::string> texts;
    for (const Wildcard& wildcard : pattern_.wildcards) {
      if (by_types.contains(wildcard.name)) continue;
      std::string text = name_of(wildcard);
      if (wildcard.kind != WildcardKind::value) {
        text += ": " + std::string(wildcard_kind_text(wildcard.kind));
      } else if (wildcard.type) {
        text += ": " + type_text(*wildcard.type);
      }
      texts.push_back(std::move(text));
    }
    return texts;
  }

  std::string where() const {
    std::vector<std::string> texts;
    for (const Wildcard& wildcard : pattern_.wildcards)
      for (const Condition& condition : wildcard.conditions) {
        std::vector<std::string> operands;
        for (const Attribute& operand : condition.operands) operands.push_back(operand.text());
        const bool is_set = condition.relation == Relation::one_of;
        texts.push_back(name_of(wildcard) + " " + std::string(relation_text(condition.relation)) + " " +
                        (is_set ? "{" + joined(operands) + "}" : operands.at(0)));
      }
    return texts.empty() ? "" : " where " + joined(texts);
  }

  // Names of the results of each node, without `%`.
  std::vector<std::vector<std::string>> local_names(const PatternBody& body) const {
    std::set<std::string> taken;
    std::vector<std::vector<std::string>> names;
    int count = 0;
    for (const PatternNode& node : body.nodes) {
      names.emplace_back();
      for (const PatternResult& result : node.results) {
        names.back().push_back(canonical_ ? std::to_string(count++) : result.name);
        taken.insert(names.back().back());
      }
    }
    std::map<std::string, int> next;
    for (std::size_t i = 0; i < names.size(); ++i)
      for (std::string& name : names[i]) {
        if (!name.empty()) continue;
        const std::string& stem = body.nodes[i].name;
        do name = stem + "_" + std::to_string(next[stem]++);
        while (!taken.insert(name).second);
      }
    return names;
  }

  Attribute renamed(const Attribute& value) const {
    if (const auto* list = std::get_if<AttributeList>(&value.storage())) {
      AttributeList elements;
      for (const Attribute& element : *list) elements.push_back(renamed(element));
      return elements;
    }
    if (const Dim* dim = std::get_if<Dim>(&value.storage())) return dim->substitute(symbols_);
    return value;
  }

  std::string body(const char* keyword, const PatternBody& body) const {
    const auto names = local_names(body);
    auto operand_text = [&](const PatternOperand& operand) -> std::string {
      if (!operand.present()) return "none";
      if (operand.wildcard >= 0) return name_of(pattern_.wildcards[static_cast<std::size_t>(operand.wildcard)]);
      return "%" + names[static_cast<std::size_t>(operand.node)][static_cast<std::size_t>(operand.result)];
    };
    std::string out = std::string("  ") + keyword + " {\n";
    for (std::size_t i = 0; i < body.nodes.size(); ++i) {
      const PatternNode& node = body.nodes[i];
      std::vector<std::string> results, arguments;
      for (std::size_t r = 0; r < node.results.size(); ++r)
        results.push_back("%" + names[i][r] + (node.results[r].type ? ": " + type_text(*node.results[r].type) : ""));
      std::vector<bool> present;
      for (const PatternOperand& operand : node.operands) present.push_back(operand.present());
      const std::size_t shown = shown_operands(node.op, present);
      for (std::size_t o = 0; o < shown; ++o) arguments.push_back(operand_text(node.operands[o]));
      Attributes attributes;
      for (const auto& [key, value] : node.attributes.entries()) attributes.set(key, renamed(value));
      for (std::string& text : attribute_texts(node.op, attributes)) arguments.push_back(std::move(text));
      out += "    " + joined(results) + " = " + node.name + "(" + joined(arguments) + ")\n";
    }
    std::vector<std::string> returned;
    for (const PatternOperand& result : body.results) returned.push_back(operand_text(result));
    return out + "    return " + joined(returned) + "\n  }\n";
  }

  const Pattern& pattern_;
  bool canonical_;
  std::map<std::string, std::string> names_;  // of the wildcards, by the author's name; without `?`
  std::map<std::string, Dim> symbols_;        // the same, with `?`
};

}  // namespace

std::string display(const Pattern& pattern) { return PatternPrinter(pattern, false).text(); }

std::string canonical(const Pattern& pattern) { return PatternPrinter(pattern, true).text(); }

}  // namespace weft
