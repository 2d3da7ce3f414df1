#include "base/elf_note.h"

#include <cstring>
#include <fstream>
#include <vector>

#include <elf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/build_id.h"
#include "base/files.h"
#include "tests/base/temporary_folder.h"

namespace weft::elf_note_test {

// With words in the byte order of this machine.
std::vector<std::byte> bytes_of(std::initializer_list<std::uint32_t> words) {
  std::vector<std::byte> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.begin(), bytes.size());
  return bytes;
}

std::uint32_t letters(const char (&text)[5]) {
  std::uint32_t word = 0;
  std::memcpy(&word, text, 4);
  return word;
}

TEST(ElfNote, IsFoundByOwnerAndType) {
  const std::vector<std::byte> notes = bytes_of({4, 3, 1, letters("one\0"), 11,        //
                                                 4, 4, 2, letters("one\0"), 12,        //
                                                 5, 8, 1, letters("thre"),  0,  1, 2,  // a name padded to two words
                                                 4, 4, 1, letters("two\0"), 13});
  const auto word_of = [&](std::string_view owner, std::uint32_t type) {
    const auto found = find_note(notes, owner, type);
    std::uint32_t word = 0;
    if (found.size() == 4) std::memcpy(&word, found.data(), 4);
    return word;
  };
  EXPECT_EQ(find_note(notes, "one", 1).size(), 3u);
  EXPECT_EQ(word_of("one", 2), 12u);
  EXPECT_EQ(find_note(notes, "thre", 1).size(), 8u);
  EXPECT_EQ(word_of("two", 1), 13u);
  EXPECT_TRUE(find_note(notes, "two", 2).empty());
  EXPECT_TRUE(find_note(notes, "on", 1).empty());
  // Cut anywhere, it is there as a whole or not at all.
  for (std::size_t left = 0; left < notes.size(); ++left)
    EXPECT_TRUE(find_note(std::span(notes).first(left), "two", 1).empty()) << left;
  EXPECT_TRUE(find_note(bytes_of({4, 0xffffffff, 1, letters("one\0")}), "one", 1).empty());
}

TEST(ElfNote, IsReadFromAFileWithoutTheRestOfIt) {
  const std::string own = note_of_file("/proc/self/exe", "GNU", NT_GNU_BUILD_ID);
  std::string hexadecimal;
  for (const char byte : own) hexadecimal += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  EXPECT_EQ(hexadecimal, build_id());
  const TemporaryFolder folder;
  const auto note_of = [&](const std::string& bytes) {
    std::ofstream(folder / "file", std::ios::binary) << bytes;
    return note_of_file(folder / "file", "GNU", NT_GNU_BUILD_ID);
  };
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string first(8192, '\0');
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  EXPECT_EQ(note_of(first), own);
  for (const std::size_t left : {0, 3, 16, 63, 64, 100, 200}) EXPECT_EQ(note_of(first.substr(0, left)), "") << left;
  EXPECT_EQ(note_of("text, and no program" + std::string(200, ' ')), "");
  EXPECT_EQ(note_of_file(folder / "nothing", "GNU", NT_GNU_BUILD_ID), "");
}

}  // namespace weft::elf_note_test
