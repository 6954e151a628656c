/* A disk that fails when it is told to: preloaded into a broker, steered through a file that both sides map.

   Each rule names a call, a pattern of paths, how many matching calls pass first and how many fail then, and how: an
   errno, half a write, half a write and then the errno, or a delay. Calls on other paths cost a look at one number. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum call {
    ANY, OPEN, WRITE, FSYNC, FTRUNCATE, RENAME, UNLINK, MKDIR, SENDFILE, COPY_RANGE
};
static const char *const NAMES[] = {
    "any", "open", "write", "fsync", "ftruncate", "rename", "unlink", "mkdir", "sendfile", "copy_file_range"
};

enum { RULES = 16, PATTERN_BYTES = 208, HALF = 1, HALF_THEN_ERROR = 2 };

struct rule {
    _Atomic int active;
    int call, error, how, delay_ms;
    _Atomic int skip;   /* matching calls that pass first */
    _Atomic int times;  /* how many fail after that; -1: all */
    _Atomic int hits;   /* how many were made to fail */
    char pattern[PATTERN_BYTES];
};
struct control {
    _Atomic int armed;    /* any rule is active, or calls are traced */
    _Atomic int tracing;
    char root[496];       /* only paths below it are traced */
    struct rule rules[RULES];
};

static struct control *control;
static int trace_fd = -1;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAILING_DISK");
    if (!path) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (mapped != MAP_FAILED) control = mapped;
    const char *trace = getenv("FAILING_DISK_TRACE");
    if (trace) trace_fd = (int)syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

static void path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
}

static void path_at(int directory, const char *name, char *path) {
    if (name[0] == '/' || directory == AT_FDCWD) {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    char base[PATH_MAX];
    path_of(directory, base);
    if (snprintf(path, PATH_MAX, "%s/%s", base, name) >= PATH_MAX) path[PATH_MAX - 1] = 0;
}

static void trace(enum call call, const char *path) {
    size_t root = strlen(control->root);
    if (trace_fd < 0 || strncmp(path, control->root, root) != 0) return;
    char line[PATH_MAX + 32];
    int size = snprintf(line, sizeof line, "%s %s\n", NAMES[call], path + root);
    syscall(SYS_write, trace_fd, line, size);
}

/* A star stands for slashes, too, unless the pattern begins with "=". */
static int matches(const char *pattern, const char *path) {
    return pattern[0] == '=' ? !fnmatch(pattern + 1, path, FNM_PATHNAME) : !fnmatch(pattern, path, 0);
}

/* The errno that a call shall fail with, or 0; `how` says what a write does before. */
static int verdict(enum call call, const char *path, int *how) {
    *how = 0;
    if (atomic_load(&control->tracing)) trace(call, path);
    for (int at = 0; at < RULES; at++) {
        struct rule *rule = &control->rules[at];
        if (!atomic_load(&rule->active) || (rule->call != ANY && rule->call != (int)call)) continue;
        if (!matches(rule->pattern, path)) continue;
        if (atomic_fetch_sub(&rule->skip, 1) > 0) continue;
        int left = atomic_load(&rule->times);
        if (left == 0) continue;
        if (left > 0) atomic_fetch_sub(&rule->times, 1);
        atomic_fetch_add(&rule->hits, 1);
        if (rule->delay_ms) {
            struct timespec wait = {rule->delay_ms / 1000, (long)(rule->delay_ms % 1000) * 1000000};
            nanosleep(&wait, NULL);
        }
        *how = rule->how;
        if (rule->error || rule->how) return rule->error;
    }
    return 0;
}

static int armed(void) { return control && atomic_load(&control->armed); }

static int at_fd(enum call call, int fd, int *how) {
    char path[PATH_MAX];
    if (fd <= 2) return 0;
    path_of(fd, path);
    if (path[0] != '/') return *how = 0; /* sockets and pipes */
    return verdict(call, path, how);
}

static int at_path(enum call call, int directory, const char *name) {
    char path[PATH_MAX];
    int how;
    path_at(directory, name, path);
    return verdict(call, path, &how);
}

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

#define FAIL_IF(wrong) do { int failure = (wrong); if (failure) { errno = failure; return -1; } } while (0)

#define DEFINE_WRITE(result, name, parameters, arguments, half_arguments) \
    result name parameters { \
        int how = 0, wrong = 0; \
        if (armed() && size > 0) wrong = at_fd(WRITE, fd, &how); \
        if (how && size > 1) { \
            ssize_t count = REAL(name) half_arguments; \
            if (how == HALF) return count; \
        } \
        FAIL_IF(wrong); \
        return REAL(name) arguments; \
    }

DEFINE_WRITE(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), (fd, data, size / 2))
DEFINE_WRITE(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at),
             (fd, data, size / 2, at))
DEFINE_WRITE(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at),
             (fd, data, size / 2, at))
DEFINE_WRITE(ssize_t, writev, (int fd, const struct iovec *data, int size), (fd, data, size), (fd, data, size / 2))
DEFINE_WRITE(ssize_t, pwritev, (int fd, const struct iovec *data, int size, off_t at), (fd, data, size, at),
             (fd, data, size / 2, at))

#define DEFINE_ON_FD(name, call, parameters, arguments) \
    int name parameters { \
        int how; \
        if (armed()) FAIL_IF(at_fd(call, fd, &how)); \
        return REAL(name) arguments; \
    }

DEFINE_ON_FD(fsync, FSYNC, (int fd), (fd))
DEFINE_ON_FD(fdatasync, FSYNC, (int fd), (fd))
DEFINE_ON_FD(ftruncate, FTRUNCATE, (int fd, off_t size), (fd, size))
DEFINE_ON_FD(ftruncate64, FTRUNCATE, (int fd, off64_t size), (fd, size))

#define DEFINE_ON_PATH(name, call, directory, parameters, arguments) \
    int name parameters { \
        if (armed()) FAIL_IF(at_path(call, directory, path)); \
        return REAL(name) arguments; \
    }

DEFINE_ON_PATH(truncate, FTRUNCATE, AT_FDCWD, (const char *path, off_t size), (path, size))
DEFINE_ON_PATH(truncate64, FTRUNCATE, AT_FDCWD, (const char *path, off64_t size), (path, size))
DEFINE_ON_PATH(rename, RENAME, AT_FDCWD, (const char *path, const char *to), (path, to))
DEFINE_ON_PATH(renameat, RENAME, from, (int from, const char *path, int into, const char *to), (from, path, into, to))
DEFINE_ON_PATH(unlink, UNLINK, AT_FDCWD, (const char *path), (path))
DEFINE_ON_PATH(unlinkat, UNLINK, from, (int from, const char *path, int flags), (from, path, flags))
DEFINE_ON_PATH(mkdir, MKDIR, AT_FDCWD, (const char *path, mode_t mode), (path, mode))
DEFINE_ON_PATH(mkdirat, MKDIR, from, (int from, const char *path, mode_t mode), (from, path, mode))

#define DEFINE_OPEN(name, directory, parameters, arguments) \
    int name parameters { \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (armed()) FAIL_IF(at_path(OPEN, directory, path)); \
        return REAL(name) arguments; \
    }

DEFINE_OPEN(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
DEFINE_OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
DEFINE_OPEN(openat, from, (int from, const char *path, int flags, ...), (from, path, flags, mode))
DEFINE_OPEN(openat64, from, (int from, const char *path, int flags, ...), (from, path, flags, mode))

ssize_t sendfile(int out, int fd, off_t *at, size_t size) {
    int how;
    if (armed()) FAIL_IF(at_fd(SENDFILE, fd, &how));
    return ((ssize_t (*)(int, int, off_t *, size_t))real("sendfile"))(out, fd, at, size);
}

ssize_t sendfile64(int out, int fd, off64_t *at, size_t size) {
    int how;
    if (armed()) FAIL_IF(at_fd(SENDFILE, fd, &how));
    return ((ssize_t (*)(int, int, off64_t *, size_t))real("sendfile64"))(out, fd, at, size);
}

ssize_t copy_file_range(int fd, off64_t *at, int out, off64_t *to, size_t size, unsigned flags) {
    int how;
    if (armed()) FAIL_IF(at_fd(COPY_RANGE, fd, &how));
    return REAL(copy_file_range)(fd, at, out, to, size, flags);
}
