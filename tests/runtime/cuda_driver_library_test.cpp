// Opening the CUDA driver: every reason why it cannot be used, and that calls are passed on with the arguments that it
// declares. The tests provide symbols in place of the driver, which a test machine need not have.

#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "runtime/cuda/driver_functions.h"
#include "runtime/cuda/driver_library.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_driver_library_test {

using namespace weft::cuda;

// The arguments of the symbols below: C functions have no state of their own.
struct Calls {
  int version = 13000;
  Status start = Status::success;
  int devices = 2;
  Status next = Status::success;  // for calls that create or queue something
  int pools = 1;
  Status pool = Status::success;
  Status retain = Status::success;  // of a context
  std::vector<std::string> log;
  ContextObject* current = nullptr;
};
Calls calls;

char places[8];  // in place of objects of the driver
template <class Object>
Object* place(int index) {
  return reinterpret_cast<Object*>(&places[index]);
}
template <class Object>
int index_of(Object* object) {
  return object == nullptr ? -1 : static_cast<int>(reinterpret_cast<char*>(object) - places);
}

Status note(std::string text) {
  calls.log.push_back(std::move(text));
  return calls.next;
}

// The replacement of every symbol that a test does not check.
Status succeed() { return Status::success; }

Status driver_version(int* version) {
  *version = calls.version;
  return Status::success;
}
Status start(unsigned) { return calls.start; }
Status error_name(Status status, const char** name) {
  *name = status == Status::out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_NO_DEVICE";
  return Status::success;
}
Status error_words(Status, const char** words) {
  *words = "words of the driver";
  return Status::success;
}
Status device_count(int* count) {
  *count = calls.devices;
  return Status::success;
}
Status device(DeviceNumber* number, int ordinal) {
  *number = ordinal + 40;
  return Status::success;
}
Status device_name(char* name, int, DeviceNumber number) {
  std::strcpy(name, number == 40 ? "first" : "second");
  return Status::success;
}
Status device_attribute(int* value, int attribute, DeviceNumber) {
  const std::map<int, int> values = {{75, 9},      {76, 0},        {16, 132},         {1, 1024},
                                     {97, 232448}, {38, 52428800}, {115, calls.pools}};
  *value = values.at(attribute);
  return Status::success;
}
Status total_memory(std::size_t* bytes, DeviceNumber) {
  *bytes = 1000;
  return Status::success;
}
Status default_pool(PoolObject**, DeviceNumber) { return calls.pool; }
Status memory_counts(std::size_t* free, std::size_t* total) {
  *free = 400;
  *total = 1000;
  return Status::success;
}
Status retain_context(ContextObject** context, DeviceNumber number) {
  if (calls.retain != Status::success) return calls.retain;
  *context = place<ContextObject>(number - 40);
  return note(fmt::format("retain {}", number));
}
Status release_context(DeviceNumber number) { return note(fmt::format("release {}", number)); }
Status reset_context(DeviceNumber number) { return note(fmt::format("reset {}", number)); }
Status set_context(ContextObject* context) {
  calls.current = context;
  return Status::success;
}
Status create_stream(StreamObject** stream, unsigned flags) {
  *stream = place<StreamObject>(3);
  return note(fmt::format("stream {} on {}", flags, index_of(calls.current)));
}
Status begin_capture(StreamObject* stream, int mode) {
  return note(fmt::format("capture {} mode {}", index_of(stream), mode));
}
Status allocate(DeviceAddress* address, std::size_t bytes, StreamObject* stream) {
  *address = 0x7f0000001000;
  return note(fmt::format("allocate {} on {}", bytes, index_of(stream)));
}
Status copy(DeviceAddress to, DeviceAddress from, std::size_t bytes, StreamObject* stream) {
  return note(fmt::format("copy {:x} {:x} {} on {}", to, from, bytes, index_of(stream)));
}
Status load_module(ModuleObject** module, const void* image) {
  *module = place<ModuleObject>(4);
  return note(fmt::format("load {}", static_cast<const char*>(image)));
}
Status module_function(FunctionObject** function, ModuleObject* module, const char* name) {
  *function = place<FunctionObject>(5);
  return note(fmt::format("function {} of {}", name, index_of(module)));
}
Status parameter_bytes(FunctionObject*, std::size_t, std::size_t*, std::size_t* bytes) {
  *bytes = sizeof(MixArguments);
  return Status::success;
}
Status launch(FunctionObject* function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
              unsigned threads_z, unsigned shared_bytes, StreamObject* stream, void** parameters, void** extra) {
  const auto* arguments = static_cast<const MixArguments*>(parameters[0]);
  return note(fmt::format("launch {} {}x{}x{} {}x{}x{} {} on {} with {}{}", index_of(function), x, y, z, threads_x,
                          threads_y, threads_z, shared_bytes, index_of(stream), arguments->count,
                          extra == nullptr ? "" : " and more"));
}
Status instantiate(ExecutableObject** executable, GraphObject*, unsigned long long) {
  *executable = place<ExecutableObject>(6);
  return Status::success;
}
Status end_capture(StreamObject*, GraphObject** graph) {
  *graph = place<GraphObject>(7);
  return Status::success;
}
Status update(ExecutableObject*, GraphObject*, GraphUpdateResult* result) {
  result->result = 3;
  return Status::update_failure;
}

Status create_event(EventObject** event, unsigned flags) {
  *event = place<EventObject>(1);
  return note(fmt::format("event {}", flags));
}
Status elapsed_time(float* milliseconds, EventObject* from, EventObject* to) {
  *milliseconds = 2.5f;
  return note(fmt::format("time from {} to {}", index_of(from), index_of(to)));
}
Status allocate_host(void** address, std::size_t bytes, unsigned flags) {
  *address = &places[2];
  return note(fmt::format("host memory {} flags {}", bytes, flags));
}
Status release_host(void* address) { return note(fmt::format("release {}", address == &places[2])); }
Status launch_host(StreamObject* stream, HostFunction function, void* data) {
  function(data);
  return note(fmt::format("host function on {}", index_of(stream)));
}

template <class Callable>
void* address_of(Callable* callable) {
  return reinterpret_cast<void*>(callable);
}

std::map<std::string, void*> stand_ins() {
  std::map<std::string, void*> symbols;
#define WEFT_STAND_IN(symbol, ...) symbols[#symbol] = address_of(succeed);
  WEFT_CUDA_FUNCTIONS(WEFT_STAND_IN)
#undef WEFT_STAND_IN
  const std::map<std::string, void*> looked_at = {{"cuDriverGetVersion", address_of(driver_version)},
                                                  {"cuInit", address_of(start)},
                                                  {"cuGetErrorName", address_of(error_name)},
                                                  {"cuGetErrorString", address_of(error_words)},
                                                  {"cuDeviceGetCount", address_of(device_count)},
                                                  {"cuDeviceGet", address_of(device)},
                                                  {"cuDeviceGetName", address_of(device_name)},
                                                  {"cuDeviceGetAttribute", address_of(device_attribute)},
                                                  {"cuDeviceTotalMem_v2", address_of(total_memory)},
                                                  {"cuMemGetInfo_v2", address_of(memory_counts)},
                                                  {"cuDeviceGetDefaultMemPool", address_of(default_pool)},
                                                  {"cuDevicePrimaryCtxRetain", address_of(retain_context)},
                                                  {"cuDevicePrimaryCtxRelease_v2", address_of(release_context)},
                                                  {"cuDevicePrimaryCtxReset_v2", address_of(reset_context)},
                                                  {"cuCtxSetCurrent", address_of(set_context)},
                                                  {"cuStreamCreate", address_of(create_stream)},
                                                  {"cuStreamBeginCapture_v2", address_of(begin_capture)},
                                                  {"cuStreamEndCapture", address_of(end_capture)},
                                                  {"cuMemAllocAsync", address_of(allocate)},
                                                  {"cuMemcpyAsync", address_of(copy)},
                                                  {"cuEventCreate", address_of(create_event)},
                                                  {"cuEventElapsedTime", address_of(elapsed_time)},
                                                  {"cuMemHostAlloc", address_of(allocate_host)},
                                                  {"cuMemFreeHost", address_of(release_host)},
                                                  {"cuLaunchHostFunc", address_of(launch_host)},
                                                  {"cuModuleLoadData", address_of(load_module)},
                                                  {"cuModuleGetFunction", address_of(module_function)},
                                                  {"cuFuncGetParamInfo", address_of(parameter_bytes)},
                                                  {"cuLaunchKernel", address_of(launch)},
                                                  {"cuGraphInstantiateWithFlags", address_of(instantiate)},
                                                  {"cuGraphExecUpdate_v2", address_of(update)}};
  for (const auto& [symbol, address] : looked_at) symbols[symbol] = address;
  return symbols;
}

class CudaDriverStandIns : public testing::Test {
 protected:
  void SetUp() override { calls = {}; }
  std::unique_ptr<Driver> open() {
    return open_cuda(
        [&](const char* symbol) {
          const auto found = symbols_.find(symbol);
          return found == symbols_.end() ? nullptr : found->second;
        },
        problem_);
  }
  void expect_refused(const std::string& problem) {
    EXPECT_EQ(open(), nullptr);
    EXPECT_EQ(problem_, problem);
  }

  std::map<std::string, void*> symbols_ = stand_ins();
  std::string problem_;
};

class CudaDriverRefusals : public CudaDriverStandIns {};

TEST_F(CudaDriverRefusals, IsRefusedWhereThereIsNone) {
  EXPECT_EQ(open_cuda(problem_, "libcuda_that_is_not_there.so.1"), nullptr);
  EXPECT_EQ(problem_, "libcuda_that_is_not_there.so.1 was not found");
}

TEST_F(CudaDriverRefusals, IsRefusedWhenItIsAnotherLibrary) {
  EXPECT_EQ(open_cuda(problem_, "libm.so.6"), nullptr);
  EXPECT_EQ(problem_, "the CUDA driver has no cuGetErrorName");
}

TEST_F(CudaDriverRefusals, IsRefusedWhenItIsTooOld) {
  calls.version = 11080;
  symbols_.erase("cuGraphExecUpdate_v2");
  expect_refused("the CUDA driver must be for CUDA 12.0 or newer, but is for 11.8");
}

TEST_F(CudaDriverRefusals, IsRefusedWhenItLacksAFunction) {
  symbols_.erase("cuGraphExecUpdate_v2");
  expect_refused("the CUDA driver has no cuGraphExecUpdate_v2");
}

TEST_F(CudaDriverRefusals, IsRefusedWhenItHasNoDevice) {
  calls.start = static_cast<Status>(100);
  expect_refused("the CUDA driver does not start: CUDA_ERROR_NO_DEVICE, words of the driver");
  calls.start = Status::success;
  calls.devices = 0;
  expect_refused("the CUDA driver has no device");
}

TEST_F(CudaDriverStandIns, DescribeDevicesWithoutAContext) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr) << problem_;
  EXPECT_EQ(driver->device_count(), 2);
  EXPECT_EQ(driver->facts(1).name, "second");
  EXPECT_EQ(driver->facts(1).compute_capability, 90);
  EXPECT_EQ(driver->facts(1).driver_version, 13000);
  EXPECT_EQ(driver->facts(1).multiprocessors, 132);
  EXPECT_EQ(driver->facts(1).shared_bytes, 232448);
  EXPECT_EQ(driver->facts(1).memory_bytes, 1000);
  EXPECT_EQ(driver->device_name(1), "cuda:1");
  EXPECT_EQ(calls.log, std::vector<std::string>());
}

TEST_F(CudaDriverStandIns, ArePassedCallsAsTheDriverDeclaresThem) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr) << problem_;
  const Stream stream = driver->create_stream(1);
  driver->create_stream(0, true);
  const CurrentGuard guard(*driver, stream);
  EXPECT_EQ(driver->allocate(stream, 96), reinterpret_cast<void*>(0x7f0000001000));
  driver->copy(stream, reinterpret_cast<void*>(0x10), reinterpret_cast<void*>(0x20), 5);
  const Module module = driver->load_module(1, std::as_bytes(std::span("ptx", 3)));
  const Function function = driver->find_function(module, "mix", sizeof(MixArguments));
  driver->launch(stream, function, {.blocks = {2, 3, 4}, .threads = {5, 6, 7}}, MixArguments{nullptr, nullptr, 8});
  driver->begin_capture(stream);
  EXPECT_EQ(calls.log,
            (std::vector<std::string>{"retain 40", "retain 41", "stream 1 on 1", "stream 0 on 0", "allocate 96 on 3",
                                      "copy 10 20 5 on 3", "load ptx", "function mix of 4",
                                      "launch 5 2x3x4 5x6x7 0 on 3 with 8", "capture 3 mode 1"}));
  EXPECT_THROW(driver->find_function(module, "mix", 4), CudaError);
}

TEST_F(CudaDriverStandIns, ArePassedWhatConcernsTheHost) {
  const auto driver = open();
  const Event plain = driver->create_event(0), timed = driver->create_event(0, true);
  EXPECT_FLOAT_EQ(driver->milliseconds_between(plain, timed), 2.5f);
  void* const memory = driver->allocate_host(0, 12);
  driver->release_host(0, memory);
  bool has_run = false;
  driver->launch_host(
      driver->default_stream(0), [](void* data) { *static_cast<bool*>(data) = true; }, &has_run);
  EXPECT_TRUE(has_run);
  EXPECT_EQ(calls.log, (std::vector<std::string>{"retain 40", "event 2", "event 0", "time from 1 to 1",
                                                 "host memory 12 flags 3", "release true", "host function on -1"}));
}

TEST_F(CudaDriverStandIns, HaveTheirErrorsNamed) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr) << problem_;
  const Stream stream = driver->create_stream(0);
  calls.next = Status::out_of_memory;
  expect_device_error([&] { driver->allocate(stream, 401); },
                      {"[cuda:0] cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY, words of the driver; asked 401 bytes, 400 "
                       "bytes free of 1000"});
  const CapturedGraph graph = driver->end_capture(stream);
  const Verdict verdict = driver->update(driver->instantiate(graph), graph);
  EXPECT_EQ(verdict.reason(), "a node is of another kind");
}

TEST_F(CudaDriverStandIns, NeedNoMemoryPools) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr) << problem_;
  calls.pools = 0;
  calls.pool = Status::not_supported;
  driver->create_stream(0);
  EXPECT_EQ(calls.log, (std::vector<std::string>{"retain 40", "stream 1 on 0"}));
}

TEST_F(CudaDriverStandIns, SetUpAContextAgainThatCouldNotBeSetUp) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr) << problem_;
  calls.pool = Status::out_of_memory;
  EXPECT_THROW(driver->create_stream(0), CudaError);
  EXPECT_THROW(driver->create_stream(0), CudaError);
  calls.pool = Status::success;
  driver->create_stream(0);
  EXPECT_EQ(calls.log, (std::vector<std::string>{"retain 40", "release 40", "retain 40", "release 40", "retain 40",
                                                 "stream 1 on 0"}));
}

TEST_F(CudaDriverStandIns, GiveAnotherContextAfterAReset) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr) << problem_;
  const Stream stream = driver->create_stream(0);
  calls.log.clear();
  driver->reset(0);
  driver->create_stream(0);
  EXPECT_EQ(calls.log, (std::vector<std::string>{"reset 40", "release 40", "retain 40", "stream 1 on 0"}));
  expect_device_error([&] { driver->synchronize(stream); }, {"its stream was destroyed"});
}

TEST_F(CudaDriverStandIns, SayThatTheProcessIsToStartAgainWhereAFaultOutlivesAReset) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr) << problem_;
  driver->create_stream(0);
  calls.retain = Status::illegal_address;
  expect_device_error([&] { driver->reset(0); }, {"cuDevicePrimaryCtxReset", "start the process again"});
  EXPECT_NE(driver->last_error(0).find("start the process again"), std::string::npos);
  // A failure with another reason reports only that.
  calls.retain = Status::out_of_memory;
  driver->reset(0);
  expect_device_error([&] { driver->create_stream(0); }, {"OUT_OF_MEMORY"});
}

}  // namespace weft::cuda_driver_library_test
