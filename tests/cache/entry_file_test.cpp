#include "cache/entry_file.h"

#include <cstring>
#include <random>

#include "tests/cache/cache_case.h"
#include "tests/property.h"
#include "tests/thrown_message.h"

namespace weft::entry_file_test {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string file_of(const CacheKey& key, const std::string& payload) {
  return text_of(entry_header(key, bytes_of(payload))) + payload;
}

std::size_t header_bytes(const std::string& file) {
  return static_cast<unsigned char>(file[16]) + 256u * static_cast<unsigned char>(file[17]);
}

// With correct checksums for its bytes, as if it had been written so.
std::string sealed(std::string file) {
  const std::size_t header = header_bytes(file);
  const auto put = [&](std::size_t at, const ContentHash& hash) {
    std::memcpy(file.data() + at, &hash.high, 8);
    std::memcpy(file.data() + at + 8, &hash.low, 8);
  };
  put(32, hash_bytes(std::string_view(file).substr(header)));
  put(header - 16, hash_bytes(std::string_view(file).substr(0, header - 16)));
  return file;
}

std::string refusal_of(const std::string& file) {
  try {
    check_payload(parse_entry(bytes_of(file), "file"), "file");
  } catch (const BadEntry& error) {
    return error.what();
  }
  return "";
}

TEST(EntryFile, ReadsBackTheKeyAndPayloadThatWereWritten) {
  using Factors = std::vector<std::pair<std::string, std::string>>;
  check_property(300, [](const Factors& given, const std::string& payload) {
    std::vector<CacheFactor> factors;
    for (const auto& [name, value] : given) factors.push_back({std::to_string(factors.size()) + "." + name, value});
    const CacheKey key("plan", factors);
    const std::string file = file_of(key, payload);
    const EntryFile entry = parse_entry(bytes_of(file), "file");
    RC_ASSERT(entry.key == key);
    RC_ASSERT(text_of(entry.payload) == payload);
    RC_ASSERT((file.size() - payload.size()) % kCacheAlignment == 0u);
    check_payload(entry, "file");
    check_name(entry, "plan", key.hash().hex(), "file");
  });
}

TEST(EntryFile, TellsItsFactorsInPlainText) {
  const std::string file = file_of(CacheKey("rows", {{"features", "avx512 vnni"}}), "machine code");
  EXPECT_EQ(file.substr(0, 8), "WEFTCACH");
  for (const char* text : {"rows", "features", "avx512 vnni"}) EXPECT_NE(file.find(text), std::string::npos) << text;
}

TEST(EntryFile, RefusesEveryFlippedBitAndEveryShorterOrLongerFile) {
  const std::string file = file_of(numbered_key(1), "the payload");
  ASSERT_EQ(refusal_of(file), "");
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(refusal_of(flipped), "") << bit;
  }
  for (std::size_t size = 0; size < file.size(); ++size) EXPECT_NE(refusal_of(file.substr(0, size)), "") << size;
  EXPECT_EQ(refusal_of(file.substr(0, 100)), "[\"file\"] is not an entry of the compile cache: it is cut short");
  EXPECT_EQ(refusal_of(file + "x"),
            "[\"file\"] is not an entry of the compile cache: its payload has 12 bytes instead of 11");
}

TEST(EntryFile, SaysWhatIsWrong) {
  const std::string file = file_of(numbered_key(1), "the payload");
  std::string other = file;
  other[8] = 2;
  EXPECT_NE(refusal_of(sealed(other)).find("it is of version 2, and version 1 is read"), std::string::npos);
  other = file;
  other.back() = 'D';
  EXPECT_NE(refusal_of(other).find("its payload is damaged"), std::string::npos);
  other = file;
  other[other.find("emitter")] = 'E';
  EXPECT_NE(refusal_of(other).find("its header is damaged"), std::string::npos);
  EXPECT_NE(refusal_of("#!/bin/sh" + file).find("it does not begin as one"), std::string::npos);
  const EntryFile entry = parse_entry(bytes_of(file), "file");
  const std::string own = numbered_key(1).hash().hex();
  for (const auto& [kind, hash] : {std::pair("rows", numbered_key(2).hash().hex()), {"plan", own}})
    EXPECT_NE(message_of<BadEntry>([&] {
                check_name(entry, kind, hash, "file");
              }).find("is that of rows " + own + ", under another name"),
              std::string::npos);
}

// Whoever can write checksums can write any header; it must still fit together and be the one that Weft would write.
TEST(EntryFile, RefusesSealedHeadersThatTheWriterDoesNotWrite) {
  const std::string file = file_of(numbered_key(1), "the payload");
  const std::size_t header = header_bytes(file);
  int refused = 0;
  for (std::size_t at = 12; at < header - 16; ++at) {
    if (at >= 16 && at < 24) continue;  // the offset of the seal itself
    for (const int change : {1, 0x80, 0xff}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ change);
      changed = sealed(changed);
      try {
        const EntryFile entry = parse_entry(bytes_of(changed), "file");
        EXPECT_EQ(text_of(entry_header(entry.key, entry.payload)) + "the payload", changed) << at;
      } catch (const BadEntry&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(EntryFile, AnyBytesAreRefusedWithoutHarm) {
  check_property(500, [](const std::string& noise, bool begins_right) {
    const std::string file = file_of(numbered_key(1), "the payload");
    const std::size_t kept = begins_right ? std::min(noise.size(), file.size() / 2) : 0;
    RC_ASSERT(refusal_of(file.substr(0, kept) + noise) != "");
  });
}

TEST(EntryFile, FactorsThatAreNoShortTextAreAMistakeOfTheCaller) {
  EXPECT_THROW(entry_header(CacheKey("rows", {{"graph", std::string(kMostCacheHeaderBytes, 'x')}}), {}), InternalError);
}

}  // namespace weft::entry_file_test
