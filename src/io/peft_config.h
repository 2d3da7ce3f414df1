#pragma once

// adapter_config.json of PEFT: the numbers from which the scale of each module follows.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/regex.h"

namespace weft {

class PeftConfig {
 public:
  // `where` names the file in messages. UserError for keys that ask for what is not implemented.
  PeftConfig(std::string_view text, std::string where);

  // UserError unless target_modules covers the module. The tensors of an adapter state which modules it has, so this
  // finds files that do not belong together.
  void check_module(const std::string& module) const;
  // Of a module: its rank, and the factor of its product.
  std::int64_t rank_of(const std::string& module) const;
  double scale_of(const std::string& module) const;
  const std::vector<std::string>& unknown_keys() const { return unknown_keys_; }

 private:
  // Modules whose names match the expression have a value of their own; the first one counts.
  using Patterns = std::vector<std::pair<Regex, double>>;
  static double value_of(const Patterns& patterns, const std::string& module, double other);

  std::string where_;
  double rank_ = 0, alpha_ = 0;
  bool uses_root_ = false;  // use_rslora
  Patterns ranks_, alphas_;
  std::vector<std::string> targets_;  // names, or ends of names after a dot; empty: target_expression_ or all
  std::optional<Regex> target_expression_;
  std::vector<std::string> unknown_keys_;
};

}  // namespace weft
