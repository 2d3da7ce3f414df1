#include "base/json.h"
#include "capi/handles.h"

namespace weft {

std::string selected_impls_json(const std::vector<const CompileRecord*>& records) {
  Json list = Json::array();
  for (const CompileRecord* record : records)
    list.push_back({{"graph", record->graph},
                    {"range", {record->range.lo, record->range.hi}},
                    {"impls", selected_impls(*record)}});
  return json_text(list);
}

}  // namespace weft
