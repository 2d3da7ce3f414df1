// A system that refuses AMX to a process.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tensor/amx.h"
#include "tests/cli/child_program.h"

namespace weft::amx_refused_test {

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

TEST(AmxRefused, IsReportedAndTheNextLevelIsUsed) {
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

}  // namespace weft::amx_refused_test
