#include "apps/cli/tensor_file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "io/safetensors_writer.h"
#include "tensor/batch.h"
#include "tensor/meta_parser.h"

namespace weft {
namespace {

std::int64_t page_bytes(const KvLayout& layout) { return bytes_of(layout.dtype, kv_page_elements(layout)); }

std::span<const std::int32_t> numbers(const std::optional<Tensor>& tensor, const std::string& name) {
  USER_CHECK(tensor.has_value(), "[{}] is missing", name);
  USER_CHECK(tensor->meta.is_tensor() && tensor->meta.dtype == DType::i32, "[{}] must be i32, but is {}", name,
             tensor->meta.text());
  return {tensor->as<std::int32_t>(), static_cast<std::size_t>(element_count(tensor->meta.shape).number())};
}

}  // namespace

TensorFile::TensorFile(const std::string& path) : file_(path), header_(Safetensors::parse(file_.bytes(), path)) {
  for (const auto& [name, type] : header_.metadata) {
    const StoredTensor* tensor = entry(name);
    // Other metadata is the file's own business.
    if (tensor == nullptr) continue;
    USER_CHECK(tensor->dtype == DType::u8, "[{}] {} must be u8 to hold a {}, but is {}", path, name, type,
               dtype_text(tensor->dtype));
  }
}

const StoredTensor* TensorFile::entry(const std::string& name) const {
  const auto found = std::find_if(header_.tensors.begin(), header_.tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  return found == header_.tensors.end() ? nullptr : &*found;
}

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : header_.tensors) names.push_back(tensor.name);
  return names;
}

Tensor TensorFile::plain(const StoredTensor& entry) const {
  Shape shape;
  for (std::int64_t extent : entry.shape) shape.push_back(extent);
  return Tensor::from_bytes(Meta::tensor(entry.dtype, std::move(shape)), file_.bytes().data() + entry.offset);
}

Tensor TensorFile::typed(const StoredTensor& entry, const std::string& type) const {
  const Meta meta = parse_meta(type);
  const std::byte* bytes = file_.bytes().data() + entry.offset;
  if (meta.kind == MetaKind::kv) {
    const std::int64_t page = page_bytes(meta.kv);
    USER_CHECK(page > 0 && entry.bytes > 0 && entry.bytes % page == 0,
               "[{}] must be whole pages of {} bytes to be {}, but has {} bytes", entry.name, page, type, entry.bytes);
    Tensor pages = Tensor::empty(meta, entry.bytes / page);
    std::memcpy(pages.data(), bytes, static_cast<std::size_t>(entry.bytes));
    return pages;
  }
  USER_CHECK(meta.is_tensor() && meta.is_contiguous() && meta.packed.empty() && meta.bytes().is_number(),
             "[{}] must be a plain tensor or KV pages, but its type is {}", entry.name, type);
  USER_CHECK(meta.bytes().number() == entry.bytes, "[{}] must have {} bytes to be {}, but has {}", entry.name,
             meta.bytes().number(), type, entry.bytes);
  return Tensor::from_bytes(meta, bytes);
}

std::optional<Tensor> TensorFile::batch(const std::string& name) const {
  if (entry(name + ".query_starts") == nullptr) return std::nullopt;
  const std::string starts_name = name + ".query_starts", lengths_name = name + ".lengths",
                    table_name = name + ".block_table";
  const std::optional<Tensor> starts = find(starts_name), lengths = find(lengths_name), table = find(table_name);
  return make_batch(numbers(starts, starts_name), numbers(lengths, lengths_name), numbers(table, table_name));
}

std::optional<Tensor> TensorFile::find(const std::string& name) const {
  const StoredTensor* tensor = entry(name);
  if (tensor == nullptr) return batch(name);
  const auto type = header_.metadata.find(name);
  return type == header_.metadata.end() ? plain(*tensor) : typed(*tensor, type->second);
}

void check_batch(const Tensor& batch, const Tensor& kv, std::int64_t rows) {
  const Batch& step = batch_of(batch);
  const std::int64_t pages = (kv.storage->bytes() - kv.byte_offset) / page_bytes(kv.meta.kv);
  USER_CHECK(step.query_starts[step.sequences] == rows, "[batch] query_starts must end at the {} rows, but end at {}",
             rows, step.query_starts[step.sequences]);
  for (std::int32_t i = 0; i < step.sequences; ++i) {
    const std::int64_t needed = (std::int64_t{step.lengths[i]} + kv.meta.kv.block - 1) / kv.meta.kv.block;
    USER_CHECK(step.query_starts[i + 1] > step.query_starts[i], "[batch] sequence {} must have a row", i);
    USER_CHECK(needed <= step.max_blocks, "[batch] sequence {} needs {} pages, but the block table has room for {}", i,
               needed, step.max_blocks);
    for (std::int64_t b = 0; b < needed; ++b) {
      const std::int32_t page = step.block_table[i * std::int64_t{step.max_blocks} + b];
      USER_CHECK(page >= 0 && page < pages, "[batch] pages of sequence {} must be in [0, {}), but one is {}", i, pages,
                 page);
    }
  }
}

void write_results(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& results) {
  std::vector<NamedTensor> tensors;
  std::map<std::string, std::string> metadata;
  for (const auto& [name, tensor] : results) {
    const bool has_name =
        tensor.meta.is_tensor() && tensor.meta.packed.empty() && !safetensors_dtype_name(tensor.meta.dtype).empty();
    if (has_name) {
      tensors.push_back({name, tensor});
      continue;
    }
    USER_CHECK(tensor.meta.kind == MetaKind::kv || (tensor.meta.is_tensor() && tensor.meta.packed.empty()),
               "[--out] {} is {}, which cannot be written", name, tensor.meta.text());
    const std::int64_t bytes =
        tensor.meta.is_tensor() ? tensor.meta.bytes().number() : tensor.storage->bytes() - tensor.byte_offset;
    tensors.push_back({name, Tensor::from_bytes(Meta::tensor(DType::u8, {bytes}), tensor.data())});
    metadata[name] = tensor.meta.text();
  }
  write_safetensors(path, tensors, metadata);
}

}  // namespace weft
