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

std::string read_embedding_norm(simdjson::dom::element value, ApiRequest& request) {
  constexpr std::int64_t kNone = -1, kEuclidean = 2;
  std::int64_t norm = 0;
  if (value.get(norm) != simdjson::SUCCESS || (norm != kNone && norm != kEuclidean))
    return "2, which divides by the length, or -1, which does not";
  request.normalizes = norm == kEuclidean;
  return "";
}

std::vector<float> EmbeddingAnswer::numbers(const std::vector<float>& pooled) const {
  const EmbeddingHead& head = model().embedding_head;
  const bool activates = request().normalizes.value_or(true);
  if (!head.scores) return finished_embedding(head, pooled, request().dimensions, activates);
  const std::vector<double> classes = finished_classes(head, pooled, activates);
  return {classes.begin(), classes.end()};
}

Json EmbeddingAnswer::written(const std::vector<float>& numbers) const {
  if (request().encoding_format == "base64")
    return encode_base64({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
  return embedding_json(numbers);
}

// llama.cpp's: a list of vectors for each text, of which a pooled one has one.
Json EmbeddingAnswer::llama_answer() const {
  Json list = Json::array();
  for (std::size_t i = 0; i < size(); ++i)
    list.push_back({{"index", i}, {"embedding", Json::array({written(numbers(pooled(i)))})}});
  return list;
}

Json EmbeddingAnswer::whole_answer() {
  if (request().endpoint == llama_embedding) return llama_answer();
  const bool is_raw = request().endpoint == raw_pooling;
  Json data = Json::array();
  for (std::size_t i = 0; i < size(); ++i)
    data.push_back({{"index", i},
                    {"object", is_raw ? "pooling" : "embedding"},
                    {is_raw ? "data" : "embedding", written(numbers(pooled(i)))}});
  return {{"id", (is_raw ? "pooling-" : "embd-") + id()},
          {"object", "list"},
          {"created", std::time(nullptr)},
          {"model", model_name()},
          {"data", std::move(data)},
          {"usage", usage_json(usage())}};
}

}  // namespace weft
