#include "io/pytorch_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/pickle.h"
#include "tensor/tensor_view.h"

namespace weft {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMostPickleBytes = 64 << 20;  // values of 72 bytes are made of a byte each

// ---- The archive ----

struct Member {
  std::uint64_t offset, bytes;
};

class Archive {
 public:
  Archive(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {
    auto [at, count] = directory();
    for (std::uint64_t i = 0; i < count; ++i) at = add_entry(at);
  }

  const std::map<std::string, Member, std::less<>>& members() const { return members_; }

 private:
  template <class T>
  T number(std::uint64_t at) const {
    T value;
    std::memcpy(&value, bytes(at, sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> bytes(std::uint64_t at, std::uint64_t count) const {
    USER_CHECK(at <= file_.size() && count <= file_.size() - at, "[{}] its directory points beyond its end", where_);
    return file_.subspan(at, count);
  }
  bool has(std::uint64_t at, std::uint32_t signature) const {
    return at <= file_.size() && file_.size() - at >= sizeof signature && number<std::uint32_t>(at) == signature;
  }

  // The offset of the directory and the number of its entries, from the record at the end, which a comment may follow.
  std::pair<std::uint64_t, std::uint64_t> directory() const {
    constexpr std::uint64_t kEndBytes = 22, kMostComment = 65535, kLocatorBytes = 20;
    constexpr std::uint32_t kEnd = 0x06054b50, kLongLocator = 0x07064b50, kLongEnd = 0x06064b50;
    const std::uint64_t size = file_.size(),
                        least = size > kEndBytes + kMostComment ? size - kEndBytes - kMostComment : 0;
    for (std::uint64_t at = size < kEndBytes ? 0 : size - kEndBytes + 1; at-- > least;) {
      if (!has(at, kEnd)) continue;
      if (at < kLocatorBytes || !has(at - kLocatorBytes, kLongLocator))
        return {number<std::uint32_t>(at + 16), number<std::uint16_t>(at + 10)};
      const auto long_end = number<std::uint64_t>(at - kLocatorBytes + 8);
      USER_CHECK(has(long_end, kLongEnd), "[{}] its directory is not where its end says", where_);
      return {number<std::uint64_t>(long_end + 48), number<std::uint64_t>(long_end + 32)};
    }
    fail_user("[{}] wanted a zip archive, as torch.save writes since version 1.6, but it is none", where_);
  }

  // Returns the offset of the next entry.
  std::uint64_t add_entry(std::uint64_t at) {
    constexpr std::uint32_t kEntry = 0x02014b50, kLocal = 0x04034b50;
    constexpr std::uint64_t kEntryBytes = 46, kLocalBytes = 30;
    USER_CHECK(has(at, kEntry), "[{}] its directory ends too early", where_);
    const auto name_bytes = number<std::uint16_t>(at + 28), extra_bytes = number<std::uint16_t>(at + 30);
    const auto raw = bytes(at + kEntryBytes, name_bytes);
    const std::string name(reinterpret_cast<const char*>(raw.data()), raw.size());
    std::uint64_t size = number<std::uint32_t>(at + 24), local = number<std::uint32_t>(at + 42);
    read_long_sizes(at + kEntryBytes + name_bytes, extra_bytes, number<std::uint32_t>(at + 20), size, local);
    USER_CHECK(number<std::uint16_t>(at + 10) == 0, "[{}] its member {} is compressed", where_, quote(name));
    USER_CHECK(has(local, kLocal), "[{}] its member {} is not where its directory says", where_, quote(name));
    const std::uint64_t offset =
        local + kLocalBytes + number<std::uint16_t>(local + 26) + number<std::uint16_t>(local + 28);
    bytes(offset, size);
    members_.insert_or_assign(name, Member{offset, size});
    return at + kEntryBytes + name_bytes + extra_bytes + number<std::uint16_t>(at + 32);
  }

  // Numbers that do not fit 32 bits are all ones, and stand in an extra field: those that are needed, in this order.
  void read_long_sizes(std::uint64_t at, std::uint64_t extra_bytes, std::uint32_t packed, std::uint64_t& size,
                       std::uint64_t& local) const {
    constexpr std::uint32_t kOnes = 0xffffffff;
    constexpr std::uint16_t kLongSizes = 1;
    const std::uint64_t end = at + extra_bytes;
    while (end - at >= 4) {
      const auto id = number<std::uint16_t>(at);
      const std::uint64_t next = at + 4 + number<std::uint16_t>(at + 2);
      USER_CHECK(next <= end, "[{}] its directory has a field that is too long", where_);
      at += 4;
      if (id == kLongSizes) {
        if (size == kOnes) size = number<std::uint64_t>(std::exchange(at, at + 8));
        if (packed == kOnes) at += 8;
        if (local == kOnes) local = number<std::uint64_t>(at);
        return;
      }
      at = next;
    }
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  std::map<std::string, Member, std::less<>> members_;
};

// ---- The tensors ----

struct StorageType {
  std::string_view name;
  DType dtype;
};
constexpr StorageType kStorageTypes[] = {
    {"torch.FloatStorage", DType::f32},    {"torch.HalfStorage", DType::f16}, {"torch.BFloat16Storage", DType::bf16},
    {"torch.DoubleStorage", DType::f64},   {"torch.LongStorage", DType::i64}, {"torch.IntStorage", DType::i32},
    {"torch.ShortStorage", DType::i16},    {"torch.CharStorage", DType::i8},  {"torch.ByteStorage", DType::u8},
    {"torch.BoolStorage", DType::boolean},
};

class Tensors {
 public:
  Tensors(const Archive& archive, const Pickle& pickle, std::string folder, const std::string& where)
      : archive_(archive), pickle_(pickle), folder_(std::move(folder)), where_(where) {}

  std::vector<StoredTensor> all() const {
    const PickleValue& root = pickle_[pickle_.root];
    USER_CHECK(root.kind == Kind::dict, "[{}] wanted a dict of tensors, but it has something else", where_);
    std::vector<StoredTensor> tensors;
    for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
      const PickleValue& name = pickle_[root.items[i]];
      USER_CHECK(name.kind == Kind::text && is_printable(name.text),
                 "[{}] the name of a tensor must be a text without control characters, but is {}", where_,
                 quote(name.text));
      tensors.push_back(tensor(name.text, pickle_[root.items[i + 1]]));
    }
    return tensors;
  }

 private:
  static bool is_printable(std::string_view text) {
    return !text.empty() &&
           std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  }

  // The arguments of a call of this function; nullptr for another value.
  const std::vector<PickleIndex>* arguments_of(const PickleValue& value, std::string_view function) const {
    if (value.kind != Kind::call || pickle_[value.items[0]].text != function) return nullptr;
    return &pickle_[value.items[1]].items;
  }

  std::vector<std::int64_t> integers(const PickleValue& tuple, std::string_view name) const {
    std::vector<std::int64_t> result;
    for (const PickleIndex item : tuple.items) {
      const PickleValue& value = pickle_[item];
      USER_CHECK(value.kind == Kind::integer && value.integer >= 0,
                 "[{}] the shape and strides of tensor {} must be integers from 0", where_, name);
      result.push_back(value.integer);
    }
    return result;
  }

  StoredTensor tensor(const std::string& name, const PickleValue& value) const {
    const PickleValue* made = &value;
    if (const auto* parameter = arguments_of(value, "torch._utils._rebuild_parameter");
        parameter && !parameter->empty())
      made = &pickle_[parameter->front()];
    const auto* arguments = arguments_of(*made, "torch._utils._rebuild_tensor_v2");
    USER_CHECK(arguments != nullptr && arguments->size() >= 4, "[{}] wanted tensors alone, but {} is {}", where_, name,
               made->kind == Kind::call ? "made by " + pickle_[made->items[0]].text : "none");
    StoredTensor result;
    result.name = name;
    result.shape = integers(pickle_[(*arguments)[2]], name);
    USER_CHECK(result.shape.size() <= kMaxRank, "[{}] tensor {} must have at most {} dims, but has {}", where_, name,
               kMaxRank, result.shape.size());
    const std::int64_t elements = count_of(result.shape, integers(pickle_[(*arguments)[3]], name), name);
    place(result, pickle_[(*arguments)[0]], pickle_[(*arguments)[1]], elements);
    return result;
  }

  // The number of elements of a contiguous tensor.
  std::int64_t count_of(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                        std::string_view name) const {
    USER_CHECK(strides.size() == shape.size(), "[{}] tensor {} has {} dims, but {} strides", where_, name, shape.size(),
               strides.size());
    std::int64_t count = 1;
    const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    for (std::size_t i = shape.size(); i-- > 0 && !is_empty;) {
      USER_CHECK(shape[i] == 1 || strides[i] == count,
                 "[{}] tensor {} must be contiguous, but is stored in another order", where_, name);
      USER_CHECK(!__builtin_mul_overflow(count, shape[i], &count), "[{}] tensor {} must fit 63 bits of elements",
                 where_, name);
    }
    return is_empty ? 0 : count;
  }

  // A storage is named by a tuple: "storage", the type, the name of the member, the device, the number of elements.
  void place(StoredTensor& tensor, const PickleValue& stored, const PickleValue& first, std::int64_t elements) const {
    const PickleValue* id = stored.kind == Kind::stored ? &pickle_[stored.items[0]] : nullptr;
    USER_CHECK(id != nullptr && id->kind == Kind::tuple && id->items.size() >= 3 && first.kind == Kind::integer,
               "[{}] tensor {} has no storage", where_, tensor.name);
    const std::string& type = pickle_[id->items[1]].text;
    const auto* const known = std::ranges::find(kStorageTypes, type, &StorageType::name);
    USER_CHECK(known != std::end(kStorageTypes), "[{}] tensor {} has a storage of type {}, which is not read", where_,
               tensor.name, quote(type));
    tensor.dtype = known->dtype;
    const std::string member = folder_ + "data/" + pickle_[id->items[2]].text;
    const auto found = archive_.members().find(member);
    USER_CHECK(found != archive_.members().end(), "[{}] wanted {}, the bytes of tensor {}, but there is no such member",
               where_, quote(member), tensor.name);
    const std::int64_t size = dtype_info(tensor.dtype).block_bytes;
    const std::int64_t held = static_cast<std::int64_t>(found->second.bytes) / size;
    USER_CHECK(first.integer >= 0 && first.integer <= held && elements <= held - first.integer,
               "[{}] tensor {} has elements {} to {}, but its storage has {}", where_, tensor.name, first.integer,
               first.integer + elements, held);
    tensor.offset = static_cast<std::int64_t>(found->second.offset) + first.integer * size;
    tensor.bytes = elements * size;
  }

  const Archive& archive_;
  const Pickle& pickle_;
  std::string folder_;
  const std::string& where_;
};

}  // namespace

std::vector<StoredTensor> parse_pytorch_file(std::span<const std::byte> file, const std::string& where) {
  constexpr std::string_view kPickle = "data.pkl";
  const Archive archive(file, where);
  const auto found = std::find_if(archive.members().begin(), archive.members().end(), [&](const auto& member) {
    return member.first == kPickle || member.first.ends_with("/" + std::string(kPickle));
  });
  USER_CHECK(found != archive.members().end(), "[{}] wanted a member {}, but there is none", where, kPickle);
  const auto& [name, place] = *found;
  USER_CHECK(place.bytes <= kMostPickleBytes, "[{}] its {} may have {} bytes, but has {}", where, kPickle,
             kMostPickleBytes, place.bytes);
  const std::string folder = name.substr(0, name.size() - kPickle.size());
  const auto order = archive.members().find(folder + "byteorder");
  const bool is_little = order == archive.members().end() || order->second.bytes != 3;  // "little", else "big"
  USER_CHECK(is_little, "[{}] its numbers have the highest byte first, which is not read", where);
  const Pickle pickle = Pickle::parse(file.subspan(place.offset, place.bytes), where + "/" + name);
  return Tensors(archive, pickle, folder, where).all();
}

}  // namespace weft
