#include "server/embedding_answer.h"

#include <ctime>
#include <string_view>
#include <utility>

#include "base/base64.h"

namespace weft {

std::string read_encoding(simdjson::dom::element value, ApiRequest& request) {
  std::string_view format;
  if (value.get(format) != simdjson::SUCCESS || (format != "float" && format != "base64")) return "float or base64";
  request.encoding_format = format;
  return "";
}

Json EmbeddingAnswer::written(const std::vector<float>& pooled) const {
  const std::vector<float> embedding =
      finished_embedding(model().embedding_head, pooled, request().dimensions, request().normalizes.value_or(true));
  if (request().encoding_format == "base64")
    return encode_base64({reinterpret_cast<const char*>(embedding.data()), embedding.size() * sizeof(float)});
  return embedding_json(embedding);
}

Json EmbeddingAnswer::whole_answer() {
  Json data = Json::array();
  for (std::size_t i = 0; i < size(); ++i)
    data.push_back({{"index", i}, {"object", "embedding"}, {"embedding", written(pooled(i))}});
  return {{"id", "embd-" + id()},  {"object", "list"},        {"created", std::time(nullptr)},
          {"model", model_name()}, {"data", std::move(data)}, {"usage", usage_json(usage())}};
}

}  // namespace weft
