// The file of recorded launches that weft_device_check reads.

#include <gtest/gtest.h>

#include "tests/cuda/sample_launches.h"
#include "tests/thrown_message.h"

namespace weft::launch_file_test {

using namespace device_check;

TEST(LaunchFile, ReadsWhatItWrites) {
  const std::vector<std::byte> packed = pack_launches(sample_launches());
  const std::vector<RecordedLaunch> again = unpack_launches(packed);
  ASSERT_EQ(again.size(), sample_launches().size());
  EXPECT_EQ(pack_launches(again), packed);
}

TEST(LaunchFile, RefusesWhatIsBroken) {
  const std::vector<std::byte> packed = pack_launches(std::vector{launch_of("rms_norm_f32_plain_reference")});
  const auto refusal = [](std::vector<std::byte> bytes) { return message_of([&] { unpack_launches(bytes); }); };
  EXPECT_EQ(refusal(packed), "");
  for (std::size_t length = 0; length < packed.size(); length += 7)
    EXPECT_NE(refusal({packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(length)}), "") << length;
  std::vector<std::byte> longer = packed;
  longer.push_back(std::byte{0});
  EXPECT_NE(refusal(longer).find("1 bytes follow"), std::string::npos);
  RecordedLaunch launch = launch_of("rms_norm_f32_plain_reference");
  launch.pointers.front().buffer = 99;
  EXPECT_NE(refusal(pack_launches(std::vector{launch})).find("into buffer 99"), std::string::npos);
}

}  // namespace weft::launch_file_test
