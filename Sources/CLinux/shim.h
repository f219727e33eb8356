// Kernel interfaces that the Glibc module does not import.
#pragma once
// What the C library declares belongs to Swift's module of it, whichever module is loaded first.
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

// Declared by glibc only under _GNU_SOURCE, which the importer does not define.
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int pthread_setname_np(pthread_t thread, const char *name);
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *signals);
// io_uring(7), which glibc has no functions for.
long syscall(long number, ...);
static inline int hub_io_uring_setup(unsigned entries, struct io_uring_params *parameters) {
  return (int)syscall(SYS_io_uring_setup, entries, parameters);
}
static inline int hub_io_uring_enter(int ring, unsigned submit, unsigned least, unsigned flags) {
  return (int)syscall(SYS_io_uring_enter, ring, submit, least, flags, (void *)0, (size_t)0);
}
// The variables of the environment, `NAME=value` each, ended by NULL.
static inline char *const *hub_environment(void) {
  extern char **environ;
  return environ;
}
// Used by the tests only: processors, and a table of descriptors, for one thread, to run out without harm to others.
int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *set);
int close_range(unsigned int first, unsigned int last, int flags);
