#include "kernels/attention_window.h"

#include "tensor/attribute.h"

namespace weft {

std::int64_t attention_window(const Attributes& attributes) {
  const Attribute& window = attributes.at("window");
  return window.is_none() ? kNoWindow : window.integer();
}

std::int64_t attention_ahead(const Attributes& attributes) {
  if (attributes.at("causal").boolean()) return 0;
  const std::int64_t window = attention_window(attributes);
  return window == kNoWindow ? kNoWindow : window - 1;
}

}  // namespace weft
