// The device memory of tensors: it is counted, and data is read back to memory that exists.

#include <numeric>

#include "base/first_time_work.h"
#include "tests/runtime/cuda_replay_host.h"
#include "tests/thrown_message.h"

namespace weft::cuda_memory_test {

TEST(CudaMemory, IsCountedAndMayBeForbidden) {
  const auto device = open_device();
  FirstTimeWork work;
  const FirstTimeScope scope(&work);
  device->allocate(256);
  device->allocate_host(256);
  EXPECT_EQ(work.counts(FirstTime::allocate).before_ready, 2);
  work.set_ready(true);
  const std::string wanted = fmt::format("a tensor of 512 bytes on {} wants to allocate", device->facts().name);
  for (const std::string& message : {message_of<InternalError>([&] { device->allocate(512); }),
                                     message_of<InternalError>([&] { device->allocate_host(512); })})
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
}

TEST(CudaMemory, IsReadIntoMemoryThatIsThere) {
  const auto device = open_device();
  std::vector<float> numbers(16);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  const Tensor there = device->upload(Tensor::from_bytes(Meta::tensor(DType::f32, {4, 4}), numbers.data()));
  Tensor here = Tensor::empty(Meta::tensor(DType::f32, {32}));
  const std::byte* const place = here.data();
  device->download(there, here);
  EXPECT_EQ(here.meta, there.meta);
  EXPECT_EQ(here.data(), place);
  EXPECT_EQ(elements_of(here), std::vector<double>(numbers.begin(), numbers.end()));
  Tensor small = Tensor::empty(Meta::tensor(DType::f32, {15}));
  EXPECT_THROW(device->download(there, small), InternalError);
}

}  // namespace weft::cuda_memory_test
