#include "kernels/provider.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/test_context.h"

namespace weft::provider_test {

TEST(Provider, OfEveryKernelOfTheProgramIsAFolderOrAFormOfIt) {
  const auto context = test_context();
  std::set<std::string> folders, forms;
  context->kernels.for_each([&](const Kernel& kernel) {
    const ProviderEntry* folder = folder_of(kernel);
    ASSERT_NE(folder, nullptr) << kernel.op << "@" << kernel.provider << " of " << kernel.origin;
    folders.insert(folder->name);
    if (folder->name != kernel.provider) forms.insert(kernel.provider);
  });
  EXPECT_TRUE(folders.contains("cpu") && folders.contains("reference") && folders.contains("cuda"));
  EXPECT_EQ(forms, (std::set<std::string>{"cuda_reference", "cuda_mma", "cuda_tree"}));
}

TEST(Provider, OfAPluginHasNoFolderWhateverItsName) {
  const std::string origin = origin_of_file("cuda", "rms_norm");
  EXPECT_NE(folder_of({.op = "rms_norm", .provider = "cuda_reference", .origin = origin}), nullptr);
  EXPECT_EQ(folder_of({.op = "rms_norm", .provider = "rival", .origin = origin}), nullptr);
  EXPECT_EQ(folder_of({.op = "rms_norm", .provider = "cuda_reference", .origin = "plugin mine, libmine.so"}), nullptr);
}

}  // namespace weft::provider_test
