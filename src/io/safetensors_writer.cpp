#include "io/safetensors_writer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/safetensors.h"

namespace weft {
namespace {

void check(const NamedTensor& item) {
  const bool clean =
      std::none_of(item.name.begin(), item.name.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  USER_CHECK(!item.name.empty() && item.name != "__metadata__" && clean && !first_invalid_utf8(item.name),
             "[safetensors] the name of a tensor must be UTF-8 without control characters and not __metadata__, but is "
             "{}",
             quote(item.name));
  USER_CHECK(item.tensor.meta.is_tensor() && !safetensors_dtype_name(item.tensor.meta.dtype).empty(),
             "[safetensors] {} must have a dtype that such files can hold, but is {}", item.name,
             item.tensor.meta.text());
}

std::vector<NamedTensor> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> result;
  for (const auto& item : tensors) {
    check(item);
    result.push_back({item.name, contiguous(item.tensor)});
  }
  const auto key = [](const NamedTensor& item) {
    return std::tuple(-dtype_info(item.tensor.meta.dtype).block_bytes, std::string_view(item.name));
  };
  std::sort(result.begin(), result.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return result;
}

void append(std::vector<std::byte>& bytes, const void* data, std::size_t count) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + count);
}

}  // namespace

std::vector<std::byte> encode_safetensors(std::span<const NamedTensor> tensors,
                                          const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata)
    USER_CHECK(!first_invalid_utf8(key) && !first_invalid_utf8(value),
               "[safetensors] metadata must be UTF-8, but is not: {}", quote(key));
  const auto items = in_file_order(tensors);
  auto header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t offset = 0;
  for (const auto& [name, tensor] : items) {
    USER_CHECK(!header.contains(name), "[safetensors] tensor {} occurs twice", name);
    const auto end = offset + tensor.meta.bytes().number();
    auto shape = Json::array();
    for (const auto& dim : tensor.meta.shape) shape.push_back(dim.number());
    header[name] = {
        {"dtype", safetensors_dtype_name(tensor.meta.dtype)}, {"shape", shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  auto text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');

  std::vector<std::byte> bytes;
  bytes.reserve(8 + text.size() + static_cast<std::size_t>(offset));
  const std::uint64_t length = text.size();
  append(bytes, &length, sizeof(length));
  append(bytes, text.data(), text.size());
  for (const auto& item : items)
    append(bytes, item.tensor.data(), static_cast<std::size_t>(item.tensor.meta.bytes().number()));
  return bytes;
}

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_then_rename(path, encode_safetensors(tensors, metadata));
}

}  // namespace weft
