/* Makes system calls of one process on some files fail: preloaded, see failing_calls.py.
   The file that CHAOS_FAILING_CALLS names has one rule, "PID CALL ERRNO TEXT": the calls "read" or
   "write" of that process, or of all if PID is 0, on files whose path contains the text fail.
   Without the file none fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int error_of(const char *call, int file) {
  char rule[256], path[4096], link[64], wanted[16], text[128];
  int pid, error, saved = errno;
  const char *name = getenv("CHAOS_FAILING_CALLS");
  long rules = name ? syscall(SYS_openat, AT_FDCWD, name, O_RDONLY) : -1;
  if (rules < 0) return errno = saved, 0;
  long size = syscall(SYS_read, (int)rules, rule, sizeof rule - 1);
  syscall(SYS_close, (int)rules);
  rule[size > 0 ? size : 0] = 0;
  errno = saved;
  if (sscanf(rule, "%d %15s %d %127s", &pid, wanted, &error, text) != 4) return 0;
  if ((pid && pid != getpid()) || strcmp(wanted, call)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  size = readlink(link, path, sizeof path - 1);
  errno = saved;
  if (size < 0) return 0;
  path[size] = 0;
  return strstr(path, text) ? error : 0;
}

#define CALL(call, name, content_type)                                                 \
  ssize_t name(int file, content_type content, size_t size) {                          \
    ssize_t (*real)(int, content_type, size_t) =                                       \
        (ssize_t (*)(int, content_type, size_t))dlsym(RTLD_NEXT, #name);               \
    int error = error_of(call, file);                                                  \
    return error ? (errno = error, -1) : real(file, content, size);                    \
  }

#define CALL_AT(call, name, content_type, offset_type)                                 \
  ssize_t name(int file, content_type content, size_t size, offset_type offset) {      \
    ssize_t (*real)(int, content_type, size_t, offset_type) =                          \
        (ssize_t (*)(int, content_type, size_t, offset_type))dlsym(RTLD_NEXT, #name);  \
    int error = error_of(call, file);                                                  \
    return error ? (errno = error, -1) : real(file, content, size, offset);            \
  }

CALL("read", read, void *)
CALL_AT("read", pread, void *, off_t)
CALL_AT("read", pread64, void *, off64_t)
CALL("write", write, const void *)
CALL_AT("write", pwrite, const void *, off_t)
CALL_AT("write", pwrite64, const void *, off64_t)
