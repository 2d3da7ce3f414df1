#include "io/pytorch_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "base/files.h"
#include "io/pickle.h"
#include "io/safetensors.h"
#include "tests/io/gguf_bytes.h"
#include "tests/thrown_message.h"

namespace weft::pytorch_file_test {

using testing::as_bytes;
using testing::raw;

std::string recorded(const std::string& name) { return read_file(WEFT_TEST_DATA "/pytorch/" + name, 1 << 20); }

std::vector<StoredTensor> parse(const std::string& bytes) { return parse_pytorch_file(as_bytes(bytes), "model.bin"); }
std::string refusal(const std::string& bytes) {
  return message_of([&] { parse(bytes); });
}

std::map<std::string, std::pair<StoredTensor, std::string>> by_name(const std::vector<StoredTensor>& tensors,
                                                                    const std::string& file) {
  std::map<std::string, std::pair<StoredTensor, std::string>> result;
  for (const StoredTensor& tensor : tensors)
    result[tensor.name] = {
        tensor, file.substr(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.bytes))};
  return result;
}

// Tensors, parameters in an ordered dict, and these in another protocol of pickles.
TEST(PytorchFile, HasTheTensorsThatSafetensorsHas) {
  const std::string same = recorded("tensors.safetensors");
  const auto wanted = by_name(Safetensors::parse(as_bytes(same), "same").tensors, same);
  ASSERT_EQ(wanted.size(), 15U);
  for (const char* name : {"tensors.bin", "parameters.bin", "protocol_4.bin"}) {
    SCOPED_TRACE(name);
    const std::string file = recorded(name);
    const auto found = by_name(parse(file), file);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [tensor, one] : wanted) {
      const auto at = found.find(tensor);
      ASSERT_NE(at, found.end()) << tensor;
      EXPECT_EQ(at->second.first.dtype, one.first.dtype) << tensor;
      EXPECT_EQ(at->second.first.shape, one.first.shape) << tensor;
      EXPECT_EQ(at->second.second, one.second) << tensor;
    }
  }
}

TEST(PytorchFile, RefusesWhatIsNoDictOfTensors) {
  const auto expect = [](const char* name, const char* words) {
    const std::string message = refusal(recorded(name));
    EXPECT_TRUE(message.starts_with("[model.bin")) << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect("before_1_6.bin", "wanted a zip archive, as torch.save writes since version 1.6");
  expect("transposed.bin", "tensor transposed must be contiguous");
  expect("training.bin", "wanted tensors alone, but epoch is none");
  expect("other_object.bin", "wanted tensors alone, but path is made by pathlib.PurePosixPath");
  EXPECT_NE(refusal("").find("wanted a zip archive"), std::string::npos);
  EXPECT_NE(refusal(std::string(100, 'x')).find("wanted a zip archive"), std::string::npos);
}

// No change of a byte and no cut of the file leads outside of it.
TEST(PytorchFile, KeepsTensorsInsideADamagedFile) {
  const std::string good = recorded("tensors.bin");
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 1 + round % 3; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    if (round % 8 == 0) bad.resize(random() % bad.size());
    try {
      for (const StoredTensor& tensor : parse(bad)) {
        ASSERT_GE(tensor.offset, 0);
        ASSERT_GE(tensor.bytes, 0);
        ASSERT_LE(tensor.offset + tensor.bytes, static_cast<std::int64_t>(bad.size()));
      }
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 400);
}

TEST(Pickle, ReadsNumbersOfEachSizeAndValuesThatWereStored) {
  const auto parse = [](const std::string& bytes) { return Pickle::parse(as_bytes(bytes), "pickle"); };
  const auto integer = [&](const std::string& bytes) {
    const Pickle pickle = parse(bytes + ".");
    return pickle[pickle.root].integer;
  };
  EXPECT_EQ(integer("K\xff"), 255);
  EXPECT_EQ(integer(std::string("M\x01\x02", 3)), 513);
  EXPECT_EQ(integer("J" + raw<std::int32_t>(-2)), -2);
  EXPECT_EQ(integer("\x8a\x01\xfe"), -2);
  EXPECT_EQ(integer(std::string("\x8a\x02\xff\x00", 4)), 255);
  EXPECT_EQ(integer("\x8a\x08" + raw<std::int64_t>(-5)), -5);
  EXPECT_EQ(integer(std::string("\x8a\x00", 2)), 0);
  const Pickle twice = parse(std::string("K\x05q\x00h\x00\x86.", 8));
  EXPECT_EQ(twice[twice.root].items.size(), 2U);
  EXPECT_EQ(twice[twice[twice.root].items[1]].integer, 5);
}

TEST(Pickle, RefusesWhatIsIncompleteOrUnknown) {
  const auto refused = [](const std::string& bytes) {
    return message_of([&] { Pickle::parse(as_bytes(bytes), "pickle"); });
  };
  EXPECT_NE(refused("").find("[pickle] ends in the middle"), std::string::npos);
  EXPECT_NE(refused("K").find("ends in the middle"), std::string::npos);
  EXPECT_NE(refused("X\xff\xff\xff\xff").find("ends in the middle"), std::string::npos);
  EXPECT_NE(refused("cos").find("ends in the middle"), std::string::npos);
  EXPECT_NE(refused("\x81.").find("opcode 0x81"), std::string::npos);
  EXPECT_NE(refused(".").find("takes a value"), std::string::npos);
  EXPECT_NE(refused("(K\x01R.").find("takes a value"), std::string::npos);
  EXPECT_NE(refused("t.").find("to a mark"), std::string::npos);
  EXPECT_NE(refused("NN.").find("wanted one value"), std::string::npos);
  EXPECT_NE(refused("(N.").find("wanted one value"), std::string::npos);
  EXPECT_NE(refused("NNa.").find("not a list or a dict"), std::string::npos);
  EXPECT_NE(refused("h\x07.").find("was not stored"), std::string::npos);
  EXPECT_NE(refused("\x8a\x09" + std::string(9, 'x') + ".").find("integers of 64 bits"), std::string::npos);
}

}  // namespace weft::pytorch_file_test
