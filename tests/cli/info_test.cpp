#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "runtime/cuda/driver_library.h"
#include "tensor/amx.h"
#include "tests/cli/child_program.h"
#include "tests/program_run.h"

namespace weft::info_test {

TEST(Info, ListsCudaDevicesOrSaysWhyThereAreNone) {
  std::string problem;
  const auto driver = cuda::open_cuda(problem);
  const ProgramRun text = run_weft({"info"});
  const ProgramRun json = run_weft({"info", "--json"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(json.status, 0) << json.err;
  const nlohmann::json cuda = nlohmann::json::parse(json.out)["cuda"];
  if (driver == nullptr) {
    EXPECT_NE(problem, "");
    EXPECT_EQ(cuda["reason"], problem);
    EXPECT_EQ(cuda["devices"], nlohmann::json::array());
    EXPECT_NE(text.out.find("no CUDA device: " + problem + "\n"), std::string::npos) << text.out;
    return;
  }
  EXPECT_FALSE(cuda.contains("reason"));
  ASSERT_EQ(cuda["devices"].size(), static_cast<std::size_t>(driver->device_count()));
  EXPECT_EQ(cuda["devices"][0]["name"], driver->facts(0).name);
  EXPECT_NE(text.out.find("cuda:0: " + driver->facts(0).name), std::string::npos) << text.out;
}

// From now on the calling thread and the processes that it starts are refused features with registers of their own.
bool refuse_permissions() {
  constexpr std::uint32_t kRequestPermission = 0x1023;
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kRequestPermission, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Info, SaysThatTheSystemRefusesAmx) {
  if (!amx_problem(host_amx()).empty()) GTEST_SKIP() << "this host has no AMX: " << amx_problem(host_amx());
  bool is_refused = false;
  ProgramRun run;
  std::thread([&] {
    is_refused = refuse_permissions();
    if (is_refused) run = ChildProgram({WEFT_PROGRAM, "info"}, {}).wait();
  }).join();
  if (!is_refused) GTEST_SKIP() << "this host does not filter system calls";
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("bf16 in use, host has bf16"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("refused permission"), std::string::npos) << run.out;
}

}  // namespace weft::info_test
