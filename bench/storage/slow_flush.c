/* Makes every flush of the disk take FLUSH_US microseconds longer: preloaded, see event_log.py.
   A write to a file that was opened with O_DSYNC flushes too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char *us = getenv("FLUSH_US");
  if (us) usleep((useconds_t)atoi(us));
}

#define SLOW_SYNC(name)                                   \
  int name(int file) {                                    \
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name); \
    wait_for_disk();                                      \
    return real(file);                                    \
  }

#define SLOW_WRITE(name, offset_type)                                              \
  ssize_t name(int file, const void *content, size_t size, offset_type offset) {   \
    ssize_t (*real)(int, const void *, size_t, offset_type) =                      \
        (ssize_t (*)(int, const void *, size_t, offset_type))dlsym(RTLD_NEXT, #name); \
    if (fcntl(file, F_GETFL) & O_DSYNC) wait_for_disk();                           \
    return real(file, content, size, offset);                                      \
  }

SLOW_SYNC(fsync)
SLOW_SYNC(fdatasync)
SLOW_WRITE(pwrite, off_t)
SLOW_WRITE(pwrite64, off64_t)
