#include "tests/recorded_family.h"

#include <sstream>

#include "tests/recorded_quantization.h"

namespace weft {

using Json = nlohmann::ordered_json;

RecordedFamily::RecordedFamily(const std::string& folder, const std::string& name)
    : file_(folder + "/" + name + ".safetensors"),
      manifest_(Json::parse(read_file(folder + "/" + name + ".manifest.json", 64u << 20))) {
  for (const StoredTensor& tensor : Safetensors::parse(file_.bytes(), file_.path()).tensors)
    stored_.emplace(tensor.name, tensor);
}

RecordedCall RecordedFamily::call_of(const Json& entry) const {
  RecordedCall call{.op = entry.at("op"), .name = entry.at("case")};
  call.inputs = tensors(call.name, "in", entry.at("inputs"));
  call.wanted = tensors(call.name, "out", entry.at("outputs"));
  // Codes are stored as integers; a NaN may have any of its codes, so they are compared as numbers.
  if (call.op == "encode") call.wanted.front().second.meta.dtype = format_of_torch(call.name);
  call.attributes = entry.at("attributes");
  return call;
}

RecordedProblem RecordedFamily::problem_of(const Json& entry, const RecordedCall& call,
                                           const std::vector<Tensor>& came) const {
  return recorded_difference(comparable(call.op, call.wanted), came, entry, manifest_.value("reasons", Json::array()));
}

RecordedTensors RecordedFamily::tensors(const std::string& name, const char* side, const Json& described) const {
  RecordedTensors found;
  for (const auto& [key, facts] : described.items()) {
    const StoredTensor& stored = stored_.at(name + "/" + side + "/" + key);
    const DType dtype = dtype_of_torch(facts.at("dtype").get<std::string>());
    const Meta meta = Meta::tensor(dtype, Shape(stored.shape.begin(), stored.shape.end()));
    found.emplace_back(key, Tensor::from_bytes(meta, file_.bytes().data() + stored.offset));
  }
  return found;
}

KnownDifferences read_known_differences(const std::string& path) {
  KnownDifferences known;
  if (path.empty()) return known;
  std::istringstream lines(read_file(path, 1u << 20));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string family, name;
    std::int64_t elements = 0;
    if (!(words >> family)) continue;
    USER_CHECK(words >> name >> elements && elements > 0, "[{}] a line must be FAMILY CASE ELEMENTS: {}", path, line);
    USER_CHECK(known[family].emplace(name, elements).second, "[{}] {} {} is listed twice", path, family, name);
  }
  return known;
}

}  // namespace weft
