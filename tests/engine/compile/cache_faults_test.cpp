// A whole completion over a compile cache in which one call to the system fails, whichever it is: the same tokens, and
// one warning at most.

#include <filesystem>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "tests/cache/cache_case.h"
#include "tests/cache/unwritable_disk.h"
#include "tests/engine/tiny_model.h"

namespace weft::cache_faults_test {

class CacheFaults : public ::testing::Test {
 protected:
  std::vector<int> tokens(const FileSystem& file_system) {
    Options options;
    options.threads = 1;  // the calls have one order
    options.max_num_batched_tokens = 8;
    const auto context = make_context(options);
    context->cache = files_.open(file_system);
    Engine engine(context, Checkpoint::open(path_), make_model_registry());
    return engine.generate(some_ids(4), {.temperature = 0, .max_tokens = 3, .ignore_end = true, .stop = {}}).tokens;
  }

  // The number of calls, each of which fails once. Every run begins with the state that `before` leaves.
  int walk(int error, const std::function<void()>& before) {
    for (int n = 1;; ++n) {
      before();
      files_.warnings.clear();
      const FailingFileSystem disk(n, error, hasty_disk());
      EXPECT_EQ(tokens(disk), wanted_) << "call " << n << ", error " << error;
      EXPECT_LE(files_.warnings.size(), 1u) << "call " << n << ", error " << error;
      if (!disk.has_failed()) return n - 1;
    }
  }
  void empty() const { std::filesystem::remove_all(files_.root()); }

  CacheCase files_;
  const std::string path_ = write_tiny_model(files_.folder());
  const std::vector<int> wanted_ = tokens(hasty_disk());
};

TEST_F(CacheFaults, WhicheverCallFailsWhereNothingIsKeptTheTokensAreTheSame) {
  const int calls = walk(EIO, [&] { empty(); });
  EXPECT_GT(calls, can_compile_rows() ? 60 : 20);  // two Plans and their functions, each looked up and stored
  std::cout << "count: " << calls << " calls that failed where nothing was kept\n";
}

TEST_F(CacheFaults, WhicheverCallFailsWhereEverythingIsKeptTheTokensAreTheSame) {
  const std::string kept = files_.folder() / "kept";
  std::filesystem::rename(files_.root(), kept);
  int calls = 0;
  for (const int error : {EIO, EACCES, ENOMEM, EMFILE, ESTALE})
    calls += walk(error, [&] {
      empty();
      std::filesystem::copy(kept, files_.root(), std::filesystem::copy_options::recursive);
      std::filesystem::permissions(files_.root(), std::filesystem::perms::owner_all);
    });
  EXPECT_GT(calls, 50);
  std::cout << "count: " << calls << " calls that failed where everything was kept\n";
}

// The whole disk at once, as one that is full or may not be written to.
TEST_F(CacheFaults, WhereNothingCanBeWrittenTheTokensAreTheSame) {
  for (const int error : {EROFS, EACCES, ENOSPC})
    for (const bool is_empty : {false, true}) {
      if (is_empty) empty();
      files_.warnings.clear();
      EXPECT_EQ(tokens(UnwritableDisk(error)), wanted_) << error;
      EXPECT_EQ(files_.warnings.size(), is_empty ? 1u : 0u) << error;
      empty();
      EXPECT_EQ(tokens(hasty_disk()), wanted_);
    }
}

}  // namespace weft::cache_faults_test
