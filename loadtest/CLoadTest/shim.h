// What the load test asks of the kernel and Swift cannot say: a child between fork(2) and execvp(3), samples of CPU time.
#pragma once
// What the C library declares belongs to Swift's module of it, whichever module is loaded first.
#pragma clang module import SwiftGlibc
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Declared by glibc only under _GNU_SOURCE, which the importer does not define.
int pipe2(int ends[2], int flags);

// perf_event_open(2), for which glibc has no function, on one thread: a record without a body, in the file's mapped ring, each
// time that it has run for 1/`hertz` of a second; -1 and errno otherwise.
static inline int hub_open_cpu_clock(pid_t thread, uint64_t hertz) {
  struct perf_event_attr attributes = {
    .type = PERF_TYPE_SOFTWARE, .size = sizeof attributes, .config = PERF_COUNT_SW_CPU_CLOCK, .sample_freq = hertz,
    .freq = 1,
  };
  return (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

// How far the kernel has written in such a ring, and how far it has been read: the kernel writes no further than a ring more.
static inline uint64_t hub_ring_head(const struct perf_event_mmap_page *ring) {
  return __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
}
static inline void hub_set_ring_tail(struct perf_event_mmap_page *ring, uint64_t tail) {
  __atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
}

// What a child does from fork(2) to execvp(3), with calls only that are allowed there (signal-safety(7)); ends where it fails,
// with errno in `failure`.
static inline void hub_become(char *const words[], int output, int silent, pid_t parent, int failure) {
  sigset_t none;
  sigemptyset(&none);
  int is_ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && setpgid(0, 0) == 0
    && dup2(output, STDOUT_FILENO) >= 0;
  if (is_ready && silent) {
    int nowhere = open("/dev/null", O_WRONLY);
    is_ready = nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0;
  }
  if (is_ready && sigprocmask(SIG_SETMASK, &none, NULL) == 0) execvp(words[0], words);
  int number = errno;
  _exit(write(failure, &number, sizeof number) == sizeof number ? 127 : 126);
}

// Starts a program that is killed when the thread that calls this ends, by whatever: posix_spawn(3) has no word for
// PR_SET_PDEATHSIG, and nobody but the child can ask for it. It is in a process group of its own, for a ^C is meant for who
// called; no signal is blocked in it; its standard output is `output`. Gives its pid, or -1 and errno, also that of execvp(3).
static inline pid_t hub_start_bound(char *const words[], int output, int silent) {
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) return -1;
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) hub_become(words, output, silent, parent, failure[1]);
  int number = errno;
  close(failure[1]);
  if (child > 0) {
    ssize_t count;
    while ((count = read(failure[0], &number, sizeof number)) < 0 && errno == EINTR) {}
    if (count == sizeof number) {
      while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
      child = -1;
    }
  }
  close(failure[0]);
  errno = number;
  return child;
}

// How a child has ended, without taking that from who waits for it: 0 while it runs, 1 and its exit code, 2 and its signal.
static inline int hub_peek_end(pid_t child, int *value) {
  siginfo_t info = {0};
  if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != child) return 0;
  *value = info.si_status;
  return info.si_code == CLD_EXITED ? 1 : 2;
}
