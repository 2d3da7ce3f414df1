#pragma once

// Builds the bytes of a GGUF file for tests, right or wrong as asked.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing {

// Type ids as the format's description has them, spelled out again on purpose.
enum GgufId : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kArray, kU64, kI64, kF64 };
enum GgmlId : std::uint32_t { kGgmlF32 = 0, kGgmlF16 = 1, kGgmlQ4_1 = 3, kGgmlQ8_0 = 8, kGgmlQ6K = 14 };

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string raw_text(std::string_view text) { return raw<std::uint64_t>(text.size()) + std::string(text); }

class GgufBytes {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  GgufBytes& entry(std::string_view key, std::uint32_t type, const std::string& value) {
    entries_ += raw_text(key) + raw(type) + value;
    ++entry_count;
    return *this;
  }
  GgufBytes& text(std::string_view key, std::string_view value) { return entry(key, kText, raw_text(value)); }
  GgufBytes& u32(std::string_view key, std::uint32_t value) { return entry(key, kU32, raw(value)); }
  GgufBytes& f32(std::string_view key, float value) { return entry(key, kF32, raw(value)); }
  GgufBytes& boolean(std::string_view key, bool value) { return entry(key, kBool, raw<std::uint8_t>(value)); }
  GgufBytes& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = raw<std::uint32_t>(kText) + raw<std::uint64_t>(values.size());
    for (const auto& value : values) bytes += raw_text(value);
    return entry(key, kArray, bytes);
  }
  GgufBytes& i32s(std::string_view key, const std::vector<std::int32_t>& values) {
    std::string bytes = raw<std::uint32_t>(kI32) + raw<std::uint64_t>(values.size());
    for (const auto value : values) bytes += raw(value);
    return entry(key, kArray, bytes);
  }
  GgufBytes& f32s(std::string_view key, const std::vector<double>& values) {
    std::string bytes = raw<std::uint32_t>(kF32) + raw<std::uint64_t>(values.size());
    for (const auto value : values) bytes += raw(static_cast<float>(value));
    return entry(key, kArray, bytes);
  }
  GgufBytes& booleans(std::string_view key, const std::vector<bool>& values) {
    std::string bytes = raw<std::uint32_t>(kBool) + raw<std::uint64_t>(values.size());
    for (const bool value : values) bytes += raw<std::uint8_t>(value);
    return entry(key, kArray, bytes);
  }

  // `ne` begins with the contiguous dim, as in the file. The data is stored at the next aligned offset.
  GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& ne, std::uint32_t type,
                    const std::string& data) {
    tensor_at(name, ne, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
  // Adds a tensor's entry with this offset, and no data.
  GgufBytes& tensor_at(std::string_view name, const std::vector<std::uint64_t>& ne, std::uint32_t type,
                       std::uint64_t offset) {
    tensors_ += raw_text(name) + raw(static_cast<std::uint32_t>(ne.size()));
    for (const auto dim : ne) tensors_ += raw(dim);
    tensors_ += raw(type) + raw(offset);
    ++tensor_count;
    return *this;
  }
  GgufBytes& data(const std::string& bytes) {
    data_ += bytes;
    return *this;
  }

  std::size_t header_size() const { return header().size(); }
  std::string bytes() const {
    auto result = header();
    result.resize((result.size() + alignment - 1) / alignment * alignment, '\0');
    return result + data_;
  }

  // The counts of the header; the builder counts, and a test may overwrite them.
  std::uint64_t entry_count = 0;
  std::uint64_t tensor_count = 0;

 private:
  std::string header() const {
    return "GGUF" + raw(version) + raw(tensor_count) + raw(entry_count) + entries_ + tensors_;
  }

  std::string entries_;
  std::string tensors_;
  std::string data_;
};

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// The metadata of a tiny Llama, without tokenizer and tensors.
inline GgufBytes tiny_llama_gguf() {
  GgufBytes file;
  file.text("general.architecture", "llama")
      .u32("llama.block_count", 2)
      .u32("llama.context_length", 128)
      .u32("llama.embedding_length", 64)
      .u32("llama.feed_forward_length", 96)
      .u32("llama.attention.head_count", 4)
      .u32("llama.attention.head_count_kv", 2)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .f32("llama.rope.freq_base", 10000.0F)
      .u32("llama.rope.dimension_count", 16)
      .u32("llama.vocab_size", 48);
  return file;
}

}  // namespace weft::testing
