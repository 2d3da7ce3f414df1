// The entries of every kind that a compiled model stores in the compile cache: with any single factor of its key
// changed, an entry is not found. The list of factors is read from the entries.

#include <filesystem>
#include <iostream>
#include <set>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "engine/compile/model_compilation.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/cache/cache_case.h"
#include "tests/compiler/tune/table_timer.h"
#include "tests/cuda/ptx_images.h"
#include "tests/engine/tiny_model.h"

namespace weft::cache_factors_test {

struct Kept {
  CacheKey key;
  std::vector<std::byte> payload;
};

class CacheFactors : public ::testing::Test {
 protected:
  using Open = std::function<std::shared_ptr<Context>()>;

  // Runs with a cache of these entries; the newly stored entries are those that were not found.
  std::shared_ptr<Context> compile(const Open& open, const std::vector<Kept>& entries) {
    std::filesystem::remove_all(files_.root());
    const auto cache = files_.open();
    for (const Kept& entry : entries) EXPECT_TRUE(cache->store(entry.key, entry.payload));
    const auto context = open();
    context->cache = files_.open();
    ModelCompilation(context, Checkpoint::open(path_), make_model_registry()).compile();
    return context;
  }
  std::vector<Kept> kept() {
    std::vector<Kept> entries;
    const auto cache = files_.open();
    for (const CacheListing& listing : cache->list()) {
      const CacheKey key(listing.kind, listing.factors);
      const auto entry = cache->find(key);
      EXPECT_TRUE(entry) << listing.problem;
      entries.push_back({key, {entry->payload().begin(), entry->payload().end()}});
    }
    return entries;
  }

  // The kinds that must be missing for an entry of this kind to be looked up: with Plans, no one asks for their
  // functions, and with measurements, no one asks for the slower functions.
  static std::vector<Kept> beside(const Kept& wanted, const std::vector<Kept>& all) {
    std::vector<Kept> others;
    for (const Kept& entry : all) {
      const bool hides = !entry.key.kind().ends_with("rows") && wanted.key.kind().ends_with("rows");
      if (!hides && entry.key != wanted.key) others.push_back(entry);
    }
    return others;
  }

  void expect_misses(const Open& open, const std::set<std::string>& kinds) {
    compile(open, {});
    const std::vector<Kept> all = kept();
    EXPECT_EQ(compile(open, all)->cache->counters().stores, 0) << "everything is found";
    std::set<std::string> tried;
    for (const Kept& entry : all) {
      if (!tried.insert(entry.key.kind()).second) continue;
      std::vector<Kept> entries = beside(entry, all);
      entries.push_back(entry);
      EXPECT_FALSE(compile(open, entries)->cache->has_stored(entry.key.hash().hex())) << entry.key.kind();
      const std::vector<CacheFactor>& factors = entry.key.factors();
      for (std::size_t i = 0; i < factors.size(); ++i) {
        std::vector<CacheFactor> changed = factors;
        changed[i].value += "x";
        entries.back() = {CacheKey(entry.key.kind(), changed), entry.payload};
        const auto context = compile(open, entries);
        EXPECT_TRUE(context->cache->has_stored(entry.key.hash().hex())) << entry.key.kind() << " " << factors[i].name;
        EXPECT_EQ(first_difference(entry.key, changed)->factor, factors[i].name);
      }
      std::cout << "count: " << factors.size() << " factors of " << entry.key.kind() << "\n";
    }
    EXPECT_EQ(tried, kinds);
    EXPECT_EQ(files_.warnings, std::vector<std::string>());
  }

  static Options options() {
    Options options;
    options.threads = 1;
    options.max_num_batched_tokens = 8;
    return options;
  }

  CacheCase files_;
  const std::string path_ = write_tiny_model(files_.folder());
};

TEST_F(CacheFactors, EachOfPlansFunctionsAndMeasurementsIsOfItsKey) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const Open open = [] {
    Options with_tuning = options();
    with_tuning.tuning_budget = 1000;
    with_tuning.compile_sizes = {"4"};
    auto context = make_context(with_tuning);
    context->tuning_timer = std::make_shared<TableTimer>();
    return context;
  };
  expect_misses(open, {"plans", "rows", "tuning"});
}

TEST_F(CacheFactors, EachOfFunctionsOfADeviceIsOfItsKey) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const std::vector<std::string> places = cuda::nvrtc_places(process_environment());
  std::string problem;
  if (cuda::Nvrtc::open(places, problem) == nullptr) GTEST_SKIP() << problem;
  const Open open = [&] {
    Options on_device = options();
    on_device.device = "fake-cuda";
    auto context = make_context(on_device);
    for (const char* op : {"rms_norm", "silu_and_mul"}) context->priorities.set(op, {"native"});
    put_on_fake_cuda(*context, {.read_image = &kernels_of_ptx}, places);
    return context;
  };
  expect_misses(open, {"device_rows", "plans"});
}

}  // namespace weft::cache_factors_test
