// Tensors of more than 2^32 elements: of a launch of all rows only one block runs. The memory is mapped and never
// filled. The block's result must be that of the same row alone, and at no other address.

#include <cstring>
#include <limits>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"

namespace weft::large_tensors_test {

using namespace cuda;

// Address space, of which a page is there once it was touched.
class Mapping {
 public:
  explicit Mapping(std::size_t bytes) : bytes_(bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) begin_ = static_cast<std::byte*>(mapped);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (begin_ != nullptr) munmap(begin_, bytes_);
  }
  // Null if there is not enough address space.
  std::byte* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_;
};

constexpr std::uint32_t kColumns = 4096, kGroup = 128, kGroups = kColumns / kGroup;
constexpr std::uint32_t kRows = (1u << 20) + 2, kLast = kRows - 1;
static_assert(std::uint64_t{kLast} * kColumns > std::numeric_limits<std::uint32_t>::max());

// bf16 from 1 to 2, no two neighbours the same.
void fill(std::byte* to, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint16_t>(0x3f80 + i * 37 % 128);
    std::memcpy(to + 2 * i, &number, 2);
  }
}

// The bytes that a kernel reads and writes for each row.
struct Sizes {
  std::size_t x, output, scales;
};
// The tensors of a launch of this number of rows; only the last row is filled.
struct Tensors {
  Tensors(std::uint32_t rows, Sizes sizes)
      : rows(rows), sizes(sizes), x(rows * sizes.x), output(rows * sizes.output), scales(rows * sizes.scales) {
    if (is_there()) fill(x.begin() + (rows - 1) * sizes.x, static_cast<std::uint32_t>(sizes.x / 2));
  }
  bool is_there() const { return x.begin() != nullptr && output.begin() != nullptr && scales.begin() != nullptr; }
  ScaleLayout places() const { return {reinterpret_cast<float*>(scales.begin()), kGroups, 1}; }

  template <class Arguments>
  void run(const std::string& kernel, const LaunchShape& shape, const Arguments& arguments) {
    MemoryMap memory;
    memory.allow_reading("x", x.begin(), x.bytes());
    memory.allow_writing("output", output.begin(), output.bytes());
    memory.allow_writing("scales", scales.begin(), scales.bytes());
    Emulator({.only_block = shape.blocks - 1}).run(emulated_kernel(kernel), shape, &arguments, memory);
    EXPECT_EQ(output.bytes() - memory.unwritten("output"), written_output) << kernel;
    EXPECT_EQ(scales.bytes() - memory.unwritten("scales"), written_scales) << kernel;
  }
  std::string last_row() const {
    const auto bytes_of = [&](const Mapping& mapping, std::size_t count) {
      return std::string(reinterpret_cast<const char*>(mapping.begin()) + (rows - 1) * count, count);
    };
    return bytes_of(output, sizes.output) + bytes_of(scales, sizes.scales);
  }

  std::uint32_t rows;
  Sizes sizes;
  Mapping x, output, scales;
  std::size_t written_output = 0, written_scales = 0;  // by the block that runs
};

TEST(LargeTensors, AreQuantizedByGroupInTheirOwnPlace) {
  const SiluAndMulPerBlockQuant kernel{.mathematics = Mathematics::reference};
  constexpr std::size_t kGroupsOfBlock = 16;  // the last block of a row has its last ones
  const auto quantize = [&](Tensors& tensors) {
    tensors.written_output = kGroupsOfBlock * kGroup;
    tensors.written_scales = kGroupsOfBlock * sizeof(float);
    SiluAndMulPerBlockQuantArguments arguments{.x = tensors.x.begin(),
                                               .codes = tensors.output.begin(),
                                               .places = tensors.places(),
                                               .rows = tensors.rows,
                                               .columns = kColumns};
    const LaunchShape shape = kernel.plan(arguments);
    tensors.run(kernel.kernel_name(), shape, arguments);
    return tensors.last_row();
  };
  constexpr Sizes kSizes{.x = 4 * kColumns, .output = kColumns, .scales = kGroups * sizeof(float)};
  Tensors large(kRows, kSizes), alone(1, kSizes);
  if (!large.is_there()) GTEST_SKIP() << "the address space is too small";
  const std::string wanted = quantize(alone);
  EXPECT_EQ(quantize(large), wanted);
  EXPECT_NE(wanted, std::string(wanted.size(), '\0'));
}

TEST(LargeTensors, AreNormalizedInTheirOwnPlace) {
  const auto normalize = [](Tensors& tensors) {
    tensors.written_output = 2 * kColumns;
    const RmsNormArguments arguments{.x = tensors.x.begin(),
                                     .output = tensors.output.begin(),
                                     .epsilon = 1e-5f,
                                     .columns = kColumns,
                                     .variance_columns = kColumns};
    tensors.run("rms_norm_bf16_plain_reference", {.blocks = tensors.rows, .threads = 256}, arguments);
    return tensors.last_row();
  };
  constexpr Sizes kSizes{.x = 2 * kColumns, .output = 2 * kColumns, .scales = sizeof(float)};
  Tensors large(kRows, kSizes), alone(1, kSizes);
  if (!large.is_there()) GTEST_SKIP() << "the address space is too small";
  const std::string wanted = normalize(alone);
  EXPECT_EQ(normalize(large), wanted);
  EXPECT_NE(wanted, std::string(wanted.size(), '\0'));
}

}  // namespace weft::large_tensors_test
