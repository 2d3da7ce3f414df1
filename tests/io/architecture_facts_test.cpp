#include "io/architecture_facts.h"

#include <gtest/gtest.h>

#include "tests/io/tiny_config.h"

namespace weft::architecture_facts_test {

using namespace tiny_config;

TEST(ArchitectureFacts, KeysMayStateWhatIsAlwaysThere) {
  auto config = tiny_json();
  config["model_type"] = "qwen3_moe";
  config["use_qk_norm"] = true;
  EXPECT_NO_THROW(read(config));
  config["use_qk_norm"] = false;
  EXPECT_EQ(message_of([&] { read(config); }),
            "[config.json] use_qk_norm must be true for this architecture, but is false");
  config["model_type"] = "llama";
  config["use_qk_norm"] = true;
  EXPECT_NE(message_of([&] { read(config); }), "");
}

}  // namespace weft::architecture_facts_test
