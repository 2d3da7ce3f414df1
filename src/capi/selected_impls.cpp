#include <nlohmann/json.hpp>

#include "capi/handles.h"

namespace weft {

std::string selected_impls_json(const std::vector<const CompileRecord*>& records) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CompileRecord* record : records)
    list.push_back({{"graph", record->graph},
                    {"range", {record->range.lo, record->range.hi}},
                    {"impls", selected_impls(*record)}});
  return list.dump();
}

}  // namespace weft
