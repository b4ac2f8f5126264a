/* Makes the n-th write or forcing to disk of a ledger's files fail. Loaded before the C library; armed by the test. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int wanted = 0;      /* 0 nothing, 1 writes, 2 forcings */
static long left = 0;       /* calls until one fails */
static int failure = 0;     /* its errno */
static int part = 0;        /* whether half of the bytes are written first */
static long seen = 0;

void failing_disk_arm(int kind, long number, int error, int half) {
    wanted = kind; left = number; failure = error; part = half; seen = 0;
}

long failing_disk_seen(void) { return seen; }

static int of_ledger(int descriptor) {
    char link[64], path[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return strstr(path, "people.ledger") != NULL;
}

static int fails(int kind, int descriptor) {
    if (wanted != kind || !of_ledger(descriptor)) return 0;
    seen++;
    return --left == 0;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int descriptor, const void *bytes, size_t size) {
    REAL(write);
    if (!fails(1, descriptor)) return real(descriptor, bytes, size);
    if (part) real(descriptor, bytes, size / 2);
    errno = failure;
    return -1;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t place) {
    REAL(pwrite);
    if (!fails(1, descriptor)) return real(descriptor, bytes, size, place);
    if (part) real(descriptor, bytes, size / 2, place);
    errno = failure;
    return -1;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t place) {
    REAL(pwrite64);
    if (!fails(1, descriptor)) return real(descriptor, bytes, size, place);
    if (part) real(descriptor, bytes, size / 2, place);
    errno = failure;
    return -1;
}

int fsync(int descriptor) {
    REAL(fsync);
    if (!fails(2, descriptor)) return real(descriptor);
    errno = failure;
    return -1;
}

int fdatasync(int descriptor) {
    REAL(fdatasync);
    if (!fails(2, descriptor)) return real(descriptor);
    errno = failure;
    return -1;
}
