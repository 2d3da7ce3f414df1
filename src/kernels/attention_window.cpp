#include "kernels/attention_window.h"

#include "tensor/attribute.h"

namespace weft {

std::int64_t attention_window(const Attributes& attributes) {
  const Attribute& window = attributes.at("window");
  return window.is_none() ? kNoWindow : window.integer();
}

}  // namespace weft
