// The KV pages of a ModelRunner.

#include <cstring>

#include "base/error.h"
#include "engine/run/model_runner.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/kv_pages.h"

namespace weft {

void ModelRunner::allocate_pages(std::int64_t pages) {
  page_count_ = pages;
  pages_.clear();
  for (const LayerPages& layer : facts().pages()) {
    const Meta meta = Meta::pages(layer.layout);
    pages_.push_back(has_pages_on_device() ? device_->zeros(meta, pages) : Tensor::empty(meta, pages));
    for (const PhasePrograms& phase : phases_)
      for (auto& program : phase.forward->programs) program->bind(layer.name, pages_.back());
  }
}

void ModelRunner::copy_page(std::int32_t from, std::int32_t to) {
  CHECK(!has_pages_on_device(), "pages of a device are not copied");
  const std::vector<LayerPages> layers = facts().pages();
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    const std::int64_t bytes = kv_page_bytes(layers[i].layout);
    std::memcpy(pages_[i].data() + to * bytes, pages_[i].data() + from * bytes, static_cast<std::size_t>(bytes));
  }
}

}  // namespace weft
