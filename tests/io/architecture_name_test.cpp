#include "io/architecture_name.h"

#include <gtest/gtest.h>

#include "tests/thrown_message.h"

namespace weft::architecture_name_test {

TEST(ArchitectureName, NamesAnUnknownOneAndTheKnownOnes) {
  const std::vector<std::string> known = {"llama", "qwen2"};
  EXPECT_NO_THROW(check_architecture("qwen2", known, "config.json"));
  EXPECT_EQ(message_of([&] { check_architecture("mamba", known, "config.json"); }),
            "[config.json] the architecture \"mamba\" is not implemented; wanted one of llama, qwen2");
}

}  // namespace weft::architecture_name_test
