#include "engine/calibration.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/convert.h"

namespace weft {
namespace {

float magnitude_of(const Tensor& x) {
  const Tensor plain = contiguous(x);
  const std::int64_t count = element_count(plain.meta.shape).number();
  float most = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float magnitude = std::fabs(load_float(plain.meta.dtype, plain.data(), i));
    if (!(magnitude <= most)) most = magnitude;  // also takes a NaN
    if (std::isnan(most)) break;
  }
  return most;
}

}  // namespace

const char* const kCalibrationText =
    "The harbour was quiet before sunrise. Two fishing boats had already left, and their lights moved slowly along the "
    "line where the water met the sky. Anna counted the crates again: 17 of cod, 9 of herring, 4 of crab. \"That is "
    "thirty in all,\" she said, \"and we promised thirty-two by half past six.\" Her brother shrugged and tied the "
    "rope "
    "once more.\n\n"
    "Light from the Sun takes about eight minutes and twenty seconds to reach the Earth, a distance of roughly 150 "
    "million kilometres. Plants turn part of it into sugar; the rest warms the soil, the sea and the air. When warm "
    "air "
    "rises it cools, and the water it carries becomes clouds, rain or snow.\n\n"
    "Question: A train leaves at 14:05 and travels 210 km at 84 km/h. When does it arrive?\n"
    "Answer: 210 / 84 = 2.5 hours, so it arrives at 16:35.\n\n"
    "def mean(values):\n    total = 0.0\n    for value in values:\n        total += value\n"
    "    return total / len(values)  # fails for an empty list\n\n"
    "{\"name\": \"lighthouse\", \"height_m\": 38, \"built\": 1871, \"open\": [\"Tue\", \"Sat\"]}\n\n"
    "User: Can you explain why the sky is blue?\n"
    "Assistant: Of course. Air scatters short waves of light more than long ones, so blue reaches our eyes from every "
    "direction, while red passes almost straight through. At sunset the path is longer, most of the blue is gone, and "
    "the sky turns orange.\n\n"
    "Chapter 3. The committee met in Geneva on 12 March 1954 to settle the price of wheat. Nobody expected the vote to "
    "be close; yet, after nine hours, the delegates stood at 11 to 10. Le pain quotidien, wrote one newspaper, n'a "
    "jamais \xc3\xa9t\xc3\xa9 si cher. Der Vorsitzende schwieg.\n";

std::vector<LinearInput> calibrate(Engine& engine, const std::string& text, std::int64_t most_tokens) {
  std::vector<int> ids = engine.tokenizer().encode(text);
  USER_CHECK(!ids.empty(), "[--calibrate] wanted a text, but it has no token");
  if (static_cast<std::int64_t>(ids.size()) > most_tokens) ids.resize(static_cast<std::size_t>(most_tokens));
  std::vector<LinearInput> inputs;
  std::map<std::string, std::size_t> known;  // by the first weight of a layer
  engine.runner().set_linear_observer([&](const std::vector<std::string>& keys, const Tensor& x) {
    const auto [at, is_new] = known.emplace(keys[0], inputs.size());
    if (is_new) inputs.push_back({keys, 0});
    const float magnitude = magnitude_of(x);
    USER_CHECK(std::isfinite(magnitude), "[--calibrate] what {} is given must be finite, but holds {}", keys[0],
               magnitude);
    inputs[at->second].magnitude = std::max(inputs[at->second].magnitude, magnitude);
  });
  const auto longest = static_cast<std::size_t>(engine.max_model_len());
  for (std::size_t begin = 0; begin < ids.size(); begin += longest) {
    const std::size_t end = std::min(ids.size(), begin + longest);
    engine.score({ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)}, {},
                 [](int, std::span<const float>) {});
  }
  engine.runner().set_linear_observer({});
  return inputs;
}

}  // namespace weft
