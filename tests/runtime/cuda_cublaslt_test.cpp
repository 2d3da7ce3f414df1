// Opening cuBLASLt: every reason why it cannot be used, and that products are requested with the arguments that it
// declares. The tests provide symbols in place of the library, which a test machine need not have.

#include <cstring>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "base/environment.h"
#include "runtime/cuda/cublaslt.h"
#include "tests/base/temporary_folder.h"
#include "tests/runtime/cuda_product_host.h"

namespace weft::cuda_cublaslt_test {

using namespace weft::cuda;

// The arguments of the symbols below: C functions have no state of their own.
struct Calls {
  std::size_t version = 120903;
  std::map<std::string, CublasStatus> answers;  // other than success, by function
  int found = 1;
  std::vector<std::string> log;
};
Calls calls;

CublasStatus note(const char* function, const std::string& text) {
  calls.log.push_back(std::string(function).substr(std::strlen("cublasLt")) + text);
  const auto answer = calls.answers.find(function);
  return answer == calls.answers.end() ? CublasStatus::success : answer->second;
}

char places[16];  // in place of objects of the library
int made = 0;
template <class Object>
void make(Object** object) {
  *object = reinterpret_cast<Object*>(&places[++made]);
}
template <class Object>
int index_of(Object* object) {
  return object == nullptr ? -1 : static_cast<int>(reinterpret_cast<char*>(object) - places);
}

std::string number_text(const void* value, std::size_t bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, value, bytes);
  return fmt::format("{} ({} bytes)", number, bytes);
}

std::size_t version() { return calls.version; }
const char* status_name(CublasStatus) { return "CUBLAS_STATUS_NOT_SUPPORTED"; }
const char* status_words(CublasStatus) { return "words of the library"; }
CublasStatus create(CublasltObject** object) {
  make(object);
  return note("cublasLtCreate", "");
}
CublasStatus destroy(CublasltObject*) { return note("cublasLtDestroy", ""); }
CublasStatus create_desc(MatmulDescObject** desc, std::int32_t compute_type, std::int32_t scale_type) {
  make(desc);
  return note("cublasLtMatmulDescCreate", fmt::format(" {} {}", compute_type, scale_type));
}
CublasStatus destroy_desc(MatmulDescObject*) { return CublasStatus::success; }
CublasStatus set_attribute(MatmulDescObject*, int attribute, const void* value, std::size_t bytes) {
  return note("cublasLtMatmulDescSetAttribute", fmt::format(" {} = {}", attribute, number_text(value, bytes)));
}
CublasStatus create_layout(MatrixLayoutObject** layout, std::int32_t type, std::uint64_t rows, std::uint64_t columns,
                           std::int64_t leading) {
  make(layout);
  return note("cublasLtMatrixLayoutCreate",
              fmt::format(" {}: {} of {}x{}, {} apart", index_of(*layout), type, rows, columns, leading));
}
CublasStatus destroy_layout(MatrixLayoutObject*) { return CublasStatus::success; }
CublasStatus create_preference(MatmulPreferenceObject** preference) {
  make(preference);
  return CublasStatus::success;
}
CublasStatus destroy_preference(MatmulPreferenceObject*) { return CublasStatus::success; }
CublasStatus set_preference(MatmulPreferenceObject*, int attribute, const void* value, std::size_t bytes) {
  return note("cublasLtMatmulPreferenceSetAttribute", fmt::format(" {} = {}", attribute, number_text(value, bytes)));
}
CublasStatus heuristic(CublasltObject*, MatmulDescObject*, MatrixLayoutObject* a, MatrixLayoutObject* b,
                       MatrixLayoutObject* c, MatrixLayoutObject* d, MatmulPreferenceObject*, int wanted,
                       MatmulHeuristic* found, int* count) {
  *count = calls.found;
  found->algorithm.data[7] = 77;
  return note("cublasLtMatmulAlgoGetHeuristic",
              fmt::format(" {} {} {} {} wanted {}", index_of(a), index_of(b), index_of(c), index_of(d), wanted));
}
CublasStatus multiply(CublasltObject*, MatmulDescObject*, const void* alpha, const void*, MatrixLayoutObject* a,
                      const void*, MatrixLayoutObject* b, const void* beta, const void* c, MatrixLayoutObject*, void* d,
                      MatrixLayoutObject* d_layout, const MatmulAlgorithm* algorithm, void* workspace,
                      std::size_t workspace_bytes, StreamObject*) {
  return note("cublasLtMatmul",
              fmt::format(" {} * {} {} + {}, to {}{} by {} in {}{}", *static_cast<const float*>(alpha), index_of(a),
                          index_of(b), *static_cast<const float*>(beta), index_of(d_layout), c == d ? "" : " elsewhere",
                          algorithm->data[7], workspace_bytes, workspace == nullptr ? " of nothing" : ""));
}

template <class Callable>
void* address_of(Callable* callable) {
  return reinterpret_cast<void*>(callable);
}

class CublasltStandIns : public testing::Test {
 protected:
  void SetUp() override {
    calls = {};
    made = 0;
  }
  std::optional<CublasltLibrary> open(int driver_version = 0) {
    return open_cublaslt(
        [&](const char* symbol) {
          const auto found = symbols_.find(symbol);
          return found == symbols_.end() ? nullptr : found->second;
        },
        "a library", driver_version, problem_);
  }

  std::map<std::string, void*> symbols_ = {{"cublasLtGetVersion", address_of(version)},
                                           {"cublasLtGetStatusName", address_of(status_name)},
                                           {"cublasLtGetStatusString", address_of(status_words)},
                                           {"cublasLtCreate", address_of(create)},
                                           {"cublasLtDestroy", address_of(destroy)},
                                           {"cublasLtMatmulDescCreate", address_of(create_desc)},
                                           {"cublasLtMatmulDescDestroy", address_of(destroy_desc)},
                                           {"cublasLtMatmulDescSetAttribute", address_of(set_attribute)},
                                           {"cublasLtMatrixLayoutCreate", address_of(create_layout)},
                                           {"cublasLtMatrixLayoutDestroy", address_of(destroy_layout)},
                                           {"cublasLtMatmulPreferenceCreate", address_of(create_preference)},
                                           {"cublasLtMatmulPreferenceDestroy", address_of(destroy_preference)},
                                           {"cublasLtMatmulPreferenceSetAttribute", address_of(set_preference)},
                                           {"cublasLtMatmulAlgoGetHeuristic", address_of(heuristic)},
                                           {"cublasLtMatmul", address_of(multiply)}};
  std::string problem_;
};

class CublasltRefusals : public CublasltStandIns {};

TEST_F(CublasltRefusals, SaysWhereItLookedForWhatIsMissing) {
  EXPECT_FALSE(open_cublaslt({"/nowhere/libcublasLt.so.13", "libcublasLt_that_is_not_there.so.12"}, 0, problem_));
  EXPECT_EQ(problem_,
            "libcublasLt of CUDA 12 or 13 was not found; looked for /nowhere/libcublasLt.so.13, "
            "libcublasLt_that_is_not_there.so.12");
  EXPECT_FALSE(open_cublaslt({"/nowhere/libcublasLt.so.13"}, 12040, problem_));
  EXPECT_EQ(problem_, "libcublasLt of CUDA 12 was not found; looked for /nowhere/libcublasLt.so.13");
}

TEST_F(CublasltRefusals, SaysWhatIsWrongWithWhatItFound) {
  const TemporaryFolder folder;
  std::ofstream(folder / "libcublasLt.so.13") << "no library";
  const std::vector<std::string> places = cublaslt_places([&](const std::string& name) -> std::optional<std::string> {
    if (name == "CUDA_HOME") return "/nowhere";
    return std::nullopt;
  });
  EXPECT_EQ(places.at(0), "/nowhere/lib64/libcublasLt.so.*");
  EXPECT_FALSE(open_cublaslt({"libm.so.6", folder.path() + "/libcublasLt.so.13"}, 13000, problem_));
  EXPECT_NE(
      problem_.find("libm.so.6 has no cublasLtGetVersion; " + folder.path() + "/libcublasLt.so.13 cannot be opened: "),
      std::string::npos)
      << problem_;
}

TEST_F(CublasltRefusals, NamesTheFunctionThatItLacks) {
  EXPECT_TRUE(open()) << problem_;
  symbols_.erase("cublasLtMatmulAlgoGetHeuristic");
  EXPECT_FALSE(open());
  EXPECT_EQ(problem_, "a library has no cublasLtMatmulAlgoGetHeuristic");
}

TEST_F(CublasltRefusals, NamesTheVersionThatIsAnother) {
  symbols_.erase("cublasLtMatmul");
  for (const auto& [number, text] : {std::pair<std::size_t, const char*>{111003, "11.10.3"}, {140000, "14.0.0"}}) {
    calls.version = number;
    EXPECT_FALSE(open());
    EXPECT_EQ(problem_, fmt::format("a library is version {}", text));
  }
}

// A driver runs libraries of its own major version, with any minor version, and of older ones.
TEST_F(CublasltRefusals, NamesBothWhereTheDriverIsTooOldForIt) {
  calls.version = 130102;
  EXPECT_FALSE(open(12080));
  EXPECT_EQ(problem_, "a library is version 13.1.2, and the driver is for CUDA 12.8");
  EXPECT_TRUE(open(13000)) << problem_;
  EXPECT_TRUE(open(0)) << problem_;  // no driver to ask
  calls.version = 120903;
  EXPECT_TRUE(open(12000)) << problem_;
  EXPECT_TRUE(open(13010)) << problem_;
}

// The numbers are those of cublasLt.h and library_types.h.
TEST_F(CublasltStandIns, AreCalledAsTheLibraryDeclares) {
  ProductHost host(1, 4096);
  host.library = *open();
  host.ready();
  LibraryProduct product = host.product(DType::bf16, 5, 48, 64, true);
  host.call(product);
  const auto address = [](const void* of) { return reinterpret_cast<std::uintptr_t>(of); };
  const std::vector<std::string> first = {"Create",
                                          "MatmulDescCreate 68 0",
                                          "MatmulDescSetAttribute 3 = 1 (4 bytes)",
                                          "MatmulDescSetAttribute 4 = 0 (4 bytes)",
                                          "MatmulDescSetAttribute 7 = 4 (4 bytes)",
                                          "MatrixLayoutCreate 3: 14 of 64x48, 64 apart",
                                          "MatrixLayoutCreate 4: 14 of 64x5, 80 apart",
                                          "MatrixLayoutCreate 5: 14 of 48x5, 48 apart",
                                          "MatmulPreferenceSetAttribute 1 = 4096 (8 bytes)",
                                          "MatmulPreferenceSetAttribute 3 = 2 (4 bytes)",
                                          "MatmulPreferenceSetAttribute 5 = 16 (4 bytes)",
                                          "MatmulPreferenceSetAttribute 6 = 16 (4 bytes)",
                                          "MatmulPreferenceSetAttribute 7 = 16 (4 bytes)",
                                          "MatmulPreferenceSetAttribute 8 = 16 (4 bytes)",
                                          fmt::format("MatmulDescSetAttribute 8 = {} (8 bytes)", address(product.bias)),
                                          "MatmulAlgoGetHeuristic 3 4 5 5 wanted 1",
                                          fmt::format("MatmulDescSetAttribute 8 = {} (8 bytes)", address(product.bias)),
                                          "Matmul 1 * 3 4 + 0, to 5 by 77 in 4096"};
  EXPECT_EQ(calls.log, first);
  calls.log.clear();
  host.call(product);  // known products are not requested again
  EXPECT_EQ(calls.log.size(), 2u);

  calls.log.clear();
  product.dtype = DType::f8e4m3;
  product.bias = nullptr;
  product.x_scale = product.weight_scale = reinterpret_cast<const float*>(product.result);
  product.scales = ProductScales::whole;
  host.call(product);
  const std::string scale = fmt::format(" = {} (8 bytes)", address(product.x_scale));
  ASSERT_GT(calls.log.size(), 2u);
  EXPECT_EQ(calls.log[1 + 2], "MatmulDescSetAttribute 7 = 1 (4 bytes)");
  EXPECT_EQ(calls.log[1 + 3], "MatrixLayoutCreate 8: 28 of 64x48, 64 apart");
  EXPECT_EQ(calls.log[calls.log.size() - 3], "MatmulDescSetAttribute 17" + scale);
  EXPECT_EQ(calls.log[calls.log.size() - 2], "MatmulDescSetAttribute 18" + scale);
}

TEST_F(CublasltStandIns, AreToldHowScalesLie) {
  ProductHost host(1, 4096);
  host.library = *open();
  host.ready();
  const auto modes_of = [&](ProductScales scales) {
    calls.log.clear();
    host.call(host.scaled(scales, 4, 32, 128));
    std::vector<std::string> modes;
    for (const std::string& line : calls.log)
      if (line.starts_with("MatmulDescSetAttribute 3") && line[24] != ' ') modes.push_back(line.substr(23));
    return modes;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(modes_of(ProductScales::whole), Lines());
  EXPECT_EQ(modes_of(ProductScales::rows), (Lines{"31 = 3 (4 bytes)", "32 = 3 (4 bytes)"}));
  EXPECT_EQ(modes_of(ProductScales::blocks), (Lines{"31 = 5 (4 bytes)", "32 = 4 (4 bytes)"}));
}

TEST_F(CublasltStandIns, MayFindNoWay) {
  ProductHost host;
  host.library = *open();
  host.ready();
  const LibraryProduct product = host.product(DType::bf16, 5, 48, 64, false);
  const auto expect_refused = [&] {
    const std::string refusal = host.refusal(product);
    for (const char* words : {"cublasLtMatmulAlgoGetHeuristic of a library", "words of the library", "bf16[5, 64]"})
      EXPECT_NE(refusal.find(words), std::string::npos) << refusal;
  };
  calls.found = 0;
  expect_refused();
  calls.found = 1;
  calls.answers["cublasLtMatmulAlgoGetHeuristic"] = CublasStatus::not_supported;
  expect_refused();
  calls.answers.clear();
  EXPECT_EQ(host.refusal(product), "");  // asked again
}

// The library's own answer to these descriptions; the products need a GPU.
TEST(CublasltLibraryOfThisMachine, TakesTheDescriptions) {
  std::string problem;
  const auto library = open_cublaslt(cublaslt_places(process_environment()), 0, problem);
  if (!library) GTEST_SKIP() << problem;
  const CublasltFunctions& all = library->functions;
  const auto expect_taken = [&](CublasStatus status) {
    EXPECT_STREQ(all.cublasLtGetStatusName(status), "CUBLAS_STATUS_SUCCESS");
  };
  MatmulDescObject* desc = nullptr;
  expect_taken(all.cublasLtMatmulDescCreate(&desc, kCompute32, kReal32));
  for (const int attribute : {kDescTransposeA, kDescTransposeB, kDescEpilogue})
    expect_taken(all.cublasLtMatmulDescSetAttribute(desc, attribute, &kTransposed, sizeof kTransposed));
  const void* const nothing = nullptr;
  for (const int attribute : {kDescBias, kDescScaleA, kDescScaleB})
    expect_taken(all.cublasLtMatmulDescSetAttribute(desc, attribute, &nothing, sizeof nothing));
  if (refusal_of_scales(ProductScales::blocks, 90, library->version).empty())
    for (const auto& [a, b] : {std::pair(kScaleOuter, kScaleOuter), {kScaleBlocks128, kScaleGroups128}}) {
      expect_taken(all.cublasLtMatmulDescSetAttribute(desc, kDescScaleModeA, &a, sizeof a));
      expect_taken(all.cublasLtMatmulDescSetAttribute(desc, kDescScaleModeB, &b, sizeof b));
    }
  expect_taken(all.cublasLtMatmulDescDestroy(desc));
  for (const std::int32_t type : {kReal32, kReal16, kRealBfloat16, kRealE4m3}) {
    MatrixLayoutObject* layout = nullptr;
    expect_taken(all.cublasLtMatrixLayoutCreate(&layout, type, 64, 48, 64));
    expect_taken(all.cublasLtMatrixLayoutDestroy(layout));
  }
  MatmulPreferenceObject* preference = nullptr;
  expect_taken(all.cublasLtMatmulPreferenceCreate(&preference));
  const std::uint64_t workspace_bytes = kCublasltWorkspaceBytes;
  expect_taken(all.cublasLtMatmulPreferenceSetAttribute(preference, kPreferenceWorkspaceBytes, &workspace_bytes,
                                                        sizeof workspace_bytes));
  expect_taken(all.cublasLtMatmulPreferenceSetAttribute(preference, kPreferenceReductions, &kReduceInComputeType,
                                                        sizeof kReduceInComputeType));
  const std::uint32_t alignment = 16;
  for (const int attribute :
       {kPreferenceAlignmentA, kPreferenceAlignmentB, kPreferenceAlignmentC, kPreferenceAlignmentD})
    expect_taken(all.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof alignment));
  expect_taken(all.cublasLtMatmulPreferenceDestroy(preference));
}

}  // namespace weft::cuda_cublaslt_test
