// Kernel interfaces that the Glibc module does not import.
#pragma once
#include <linux/perf_event.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

// Declared by glibc only under _GNU_SOURCE, which the importer does not define.
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int pthread_setname_np(pthread_t thread, const char *name);
int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);
// Used by the tests only: a table of descriptors for one thread, to run out of them without harm to others.
int close_range(unsigned int first, unsigned int last, int flags);

// perf_event_open(2), for which glibc has no function, on one thread: a record without a body, in the file's mapped ring, each
// time that it has run for 1/`hertz` of a second; -1 and errno otherwise. Used by the load test only.
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
