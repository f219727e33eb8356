// Linux interfaces that Swift's Glibc module does not have.
#pragma once
// Imports Swift's Glibc module before the headers below. They include headers of the C library, whose declarations
// would otherwise belong to this module, too: Swift would see each type twice.
#pragma clang module import SwiftGlibc
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

// glibc declares these only where _GNU_SOURCE is defined, which Swift's importer of C headers does not do.
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int pthread_setname_np(pthread_t thread, const char *name);
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);
// glibc has no wrappers for the system calls of io_uring(7).
long syscall(long number, ...);
static inline int hub_io_uring_setup(unsigned entries, struct io_uring_params *parameters) {
  return (int)syscall(SYS_io_uring_setup, entries, parameters);
}
static inline int hub_io_uring_enter(int ring, unsigned submit, unsigned least, unsigned flags) {
  return (int)syscall(SYS_io_uring_enter, ring, submit, least, flags, (void *)0, (size_t)0);
}
// The environment: an array of `NAME=value` strings that ends with NULL. Swift does not import the variable itself.
static inline char *const *hub_environment(void) {
  extern char **environ;
  return environ;
}
// For tests only: they restrict one thread to some processors, and give it a table of descriptors of its own (unshare
// by close_range), so that it can run out of descriptors without affecting other threads.
int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *set);
int close_range(unsigned int first, unsigned int last, int flags);
