#include "engine/schedule/kv_sizing.h"

#include <gtest/gtest.h>

#include "tests/thrown_message.h"

namespace weft::kv_sizing_test {

constexpr KvSizes kSizes{.page_bytes = 100, .page_tokens = 16, .context = 1000, .available_bytes = 80'000};

std::int64_t pages_with(const std::vector<std::pair<std::string, std::string>>& settings,
                        const KvSizes& sizes = kSizes) {
  Options options;
  for (const auto& [name, value] : settings) set_option(options, name, value, "test");
  return kv_page_count(options, sizes);
}

TEST(KvSizing, TakesAQuarterOfTheMemoryWithinBounds) {
  EXPECT_EQ(pages_with({}), 200);
  KvSizes sizes = kSizes;
  sizes.available_bytes = 1'000'000'000;
  EXPECT_EQ(pages_with({{"max-num-seqs", "3"}}, sizes), 3 * 63) << "full contexts";
  sizes.available_bytes = 0;
  EXPECT_EQ(pages_with({}, sizes), 63) << "one full context";
  sizes.is_on_device = true;
  sizes.available_bytes = 1'000'000'000;
  EXPECT_EQ(pages_with({}, sizes), 63);
}

TEST(KvSizing, TakesWhatIsRequested) {
  EXPECT_EQ(pages_with({{"kv-cache-memory-bytes", "1M"}}), (1 << 20) / 100);
  EXPECT_EQ(pages_with({{"num-gpu-blocks-override", "77"}}), 77);
}

TEST(KvSizing, NamesTheLongestContextThatFits) {
  const std::string of_bytes = message_of([] { pages_with({{"kv-cache-memory-bytes", "5099"}}); });
  EXPECT_EQ(of_bytes.find("[--kv-cache-memory-bytes]"), 0U) << of_bytes;
  EXPECT_NE(of_bytes.find("--max-model-len must be at most 800"), std::string::npos) << of_bytes;
  const std::string of_pages = message_of([] { pages_with({{"num-gpu-blocks-override", "2"}}); });
  EXPECT_EQ(of_pages.find("[--num-gpu-blocks-override]"), 0U) << of_pages;
  EXPECT_NE(of_pages.find("at most 32"), std::string::npos) << of_pages;
  EXPECT_NE(message_of([] { pages_with({{"kv-cache-memory-bytes", "99"}}); }).find("100 bytes"), std::string::npos);
  EXPECT_NE(message_of([] {
              pages_with({{"num-gpu-blocks-override", "99"}, {"kv-cache-memory-bytes", "1G"}});
            }).find("excludes"),
            std::string::npos);
}

}  // namespace weft::kv_sizing_test
