#include "apps/device_check/launch_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace weft::device_check {
namespace {

constexpr std::string_view kMagic = "weft launches 1\n";
// Nothing that is recorded is larger; a broken length must not ask for all memory.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

constexpr std::size_t kLeastRun = 64;
std::size_t length_of_run(std::span<const std::byte> bytes) {
  const auto other = std::find_if(bytes.begin(), bytes.end(), [&](std::byte byte) { return byte != bytes.front(); });
  return static_cast<std::size_t>(other - bytes.begin());
}
// Up to the next run that is long enough to be worth it.
std::size_t length_without_run(std::span<const std::byte> bytes) {
  std::size_t length = 0;
  while (length < bytes.size()) {
    const std::size_t same = length_of_run(bytes.subspan(length));
    if (same >= kLeastRun) break;
    length += same;
  }
  return length;
}

class Writer {
 public:
  void number(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::byte>(value >> 8 * i));
  }
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  // Stretches of one byte, which memory that is not yet written is, as their length alone.
  void sized(std::span<const std::byte> bytes) {
    number(bytes.size());
    while (!bytes.empty()) {
      const std::size_t different = length_without_run(bytes);
      number(different);
      raw(bytes.first(different));
      bytes = bytes.subspan(different);
      if (bytes.empty()) break;
      const std::size_t same = length_of_run(bytes);
      number(same);
      raw(bytes.first(1));
      bytes = bytes.subspan(same);
    }
  }
  void text(std::string_view text) {
    number(text.size());
    raw(std::as_bytes(std::span(text)));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> raw(std::uint64_t count) {
    USER_CHECK(count <= bytes_.size() - place_, "[launches] wanted {} bytes from byte {} on, but the file has {}",
               count, place_, bytes_.size());
    place_ += count;
    return bytes_.subspan(place_ - count, count);
  }
  std::uint64_t number(std::uint64_t most = kMostBytes) {
    std::uint64_t value = 0;
    const std::span<const std::byte> bytes = raw(8);
    for (std::size_t i = 0; i < 8; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    USER_CHECK(value <= most, "[launches] wanted a number up to {} at byte {}, but is {}", most, place_ - 8, value);
    return value;
  }
  std::uint32_t small(std::uint64_t most) { return static_cast<std::uint32_t>(number(most)); }
  std::vector<std::byte> sized() {
    const std::uint64_t size = number();
    std::vector<std::byte> bytes;
    while (bytes.size() < size) {
      const std::span<const std::byte> different = raw(number(size - bytes.size()));
      bytes.insert(bytes.end(), different.begin(), different.end());
      if (bytes.size() == size) break;
      const std::uint64_t same = number(size - bytes.size());
      const std::byte byte = raw(1).front();
      USER_CHECK(same > 0, "[launches] a stretch of no bytes ends at byte {}", place_);
      bytes.insert(bytes.end(), same, byte);
    }
    return bytes;
  }
  std::string text() {
    const std::span<const std::byte> bytes = raw(number());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  DType dtype() {
    const std::string name = text();
    const std::optional<DType> found = dtype_from_text(name);
    USER_CHECK(found.has_value(), "[launches] wanted a dtype before byte {}, but is {}", place_, name);
    return *found;
  }
  std::size_t left() const { return bytes_.size() - place_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t place_ = 0;
};

void write(Writer& to, const RecordedLaunch& launch) {
  to.text(launch.name);
  to.text(launch.kernel);
  to.text(dtype_text(launch.input));
  for (const std::uint32_t side : {launch.shape.blocks, launch.shape.block_rows, launch.shape.threads}) to.number(side);
  to.number(launch.is_approximate ? 1 : 0);
  to.sized(launch.bytes);
  to.number(launch.buffers.size());
  for (const RecordedBuffer& buffer : launch.buffers) {
    to.text(buffer.name);
    to.text(dtype_text(buffer.dtype));
    to.sized(buffer.before);
    to.sized(buffer.wanted);
  }
  to.number(launch.pointers.size());
  for (const RecordedPointer& pointer : launch.pointers) {
    to.number(pointer.place);
    to.number(pointer.buffer);
    to.number(pointer.offset);
  }
}

RecordedLaunch read_launch(Reader& from) {
  constexpr std::uint64_t kMostSide = 0xffffffffu, kMostParts = 1000;
  RecordedLaunch launch{.name = from.text(), .kernel = from.text(), .input = from.dtype()};
  launch.shape.blocks = from.small(kMostSide);
  launch.shape.block_rows = from.small(kMostSide);
  launch.shape.threads = from.small(kMostSide);
  launch.is_approximate = from.number(1) == 1;
  launch.bytes = from.sized();
  launch.buffers.resize(from.number(kMostParts));
  for (RecordedBuffer& buffer : launch.buffers) {
    buffer = {.name = from.text(), .dtype = from.dtype(), .before = from.sized(), .wanted = from.sized()};
    USER_CHECK(buffer.wanted.empty() || buffer.wanted.size() == buffer.before.size(),
               "[launches] {}: {} must have {} bytes afterwards, but has {}", launch.name, buffer.name,
               buffer.before.size(), buffer.wanted.size());
  }
  launch.pointers.resize(from.number(kMostParts));
  for (RecordedPointer& pointer : launch.pointers) {
    pointer = {.place = from.small(kMostSide), .buffer = from.small(kMostSide), .offset = from.number()};
    USER_CHECK(pointer.buffer < launch.buffers.size() && std::size_t{pointer.place} + 8 <= launch.bytes.size() &&
                   pointer.offset <= launch.buffers[pointer.buffer].before.size(),
               "[launches] {}: an address at {} of {} bytes is {} bytes into buffer {}", launch.name, pointer.place,
               launch.bytes.size(), pointer.offset, pointer.buffer);
  }
  return launch;
}

}  // namespace

std::vector<std::byte> pack_launches(std::span<const RecordedLaunch> launches) {
  Writer to;
  to.raw(std::as_bytes(std::span(kMagic)));
  to.number(launches.size());
  for (const RecordedLaunch& launch : launches) write(to, launch);
  return to.take();
}

std::vector<RecordedLaunch> unpack_launches(std::span<const std::byte> packed) {
  Reader from(packed);
  const bool is_ours = packed.size() >= kMagic.size() && std::memcmp(packed.data(), kMagic.data(), kMagic.size()) == 0;
  USER_CHECK(is_ours, "[launches] the file must begin with \"{}\"", kMagic.substr(0, kMagic.size() - 1));
  from.raw(kMagic.size());
  std::vector<RecordedLaunch> launches;
  for (std::uint64_t left = from.number(); left > 0; --left) launches.push_back(read_launch(from));
  USER_CHECK(from.left() == 0, "[launches] {} bytes follow the last launch", from.left());
  return launches;
}

}  // namespace weft::device_check
