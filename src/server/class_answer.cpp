#include "server/class_answer.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace weft {

Json ClassAnswer::whole_answer() {
  const EmbeddingHead& head = model().embedding_head;
  Json data = Json::array();
  for (std::size_t i = 0; i < size(); ++i) {
    const std::vector<double> probabilities = finished_classes(head, pooled(i), request().normalizes.value_or(true));
    const auto likeliest = std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin();
    data.push_back({{"index", i},
                    {"label", head.labels[static_cast<std::size_t>(likeliest)]},
                    {"probs", probabilities},
                    {"num_classes", probabilities.size()}});
  }
  return {{"id", "classify-" + id()}, {"object", "list"},        {"created", std::time(nullptr)},
          {"model", model_name()},    {"data", std::move(data)}, {"usage", usage_json(usage())}};
}

}  // namespace weft
