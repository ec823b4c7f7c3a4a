/*
 * The filter is in the image, compiled from the profile that Docker gets as well: an engine whose
 * own filter allows more changes nothing. A filter is inherited and can only be added to, so sbxd
 * loads it once, into itself: a command costs nothing more, and its shim is filtered too.
 *
 * The debug filter needs two words: a mark that only the engine's side can set, and the option of
 * the controller with each START. The mark is an argument of PID 1 in a Pod; with Docker it is in
 * the environment, because an earlier sbxd in an operator's own image would not start with one.
 */
#include "walls.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_FILTER "/usr/lib/sandlot/default.bpf"
#define DEBUG_FILTER "/usr/lib/sandlot/debug.bpf"
#define DEBUG_MARK "SBXD_PROFILE"
#define READ_WHOLE_LOG 3

static struct sock_fprog stricter; /* kept while sbxd has the debug filter */

static _Noreturn void refuse(int error, const char *what)
{
    errno = error;
    die(what);
}

/* Never above what the engine has set: it may be tighter. */
static void lower_limit(int resource, const char *name, const char *value)
{
    struct rlimit l;
    char *end;
    unsigned long long wanted = strtoull(value, &end, 10);
    if (*value == 0 || *end != 0)
        refuse(EINVAL, name);
    if (getrlimit((__rlimit_resource_t)resource, &l) < 0)
        die(name);
    if (wanted < l.rlim_max)
        l.rlim_max = wanted;
    l.rlim_cur = l.rlim_max;
    if (setrlimit((__rlimit_resource_t)resource, &l) < 0)
        die(name);
}

bool walls_argument(const char *name, const char *value)
{
    static const struct {
        const char *name;
        int resource;
    } limits[] = {
        {"--limit-fsize", RLIMIT_FSIZE},           {"--limit-nofile", RLIMIT_NOFILE},     {"--limit-memlock", RLIMIT_MEMLOCK},
        {"--limit-sigpending", RLIMIT_SIGPENDING}, {"--limit-msgqueue", RLIMIT_MSGQUEUE},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (strcmp(name, limits[i].name) == 0) {
            lower_limit(limits[i].resource, name, value);
            return true;
        }
    if (strcmp(name, "--profile") != 0)
        return false;
    may_trace = strcmp(value, "debug") == 0;
    if (!may_trace)
        refuse(EINVAL, name);
    return true;
}

static struct sock_fprog map_filter(const char *path)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) < 0)
        die(path);
    size_t bytes = (size_t)file.st_size, instruction = sizeof(struct sock_filter);
    if (bytes == 0 || bytes % instruction || bytes / instruction > BPF_MAXINSNS)
        refuse(ENOEXEC, path);
    void *filter = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (filter == MAP_FAILED)
        die(path);
    close(fd);
    return (struct sock_fprog){(unsigned short)(bytes / instruction), filter};
}

static bool load(const struct sock_fprog *filter)
{
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) == 0;
}

/*
 * gVisor answers system calls itself, in a process that has a filter of its own towards the host.
 * Only its kernel's log shows it, which the filter would close to the proof of isolation. No
 * command has run yet, and no record of Linux begins so.
 */
static bool is_gvisor(void)
{
    static const char priority[] = "<6>[", first[] = "0.000000] Starting gVisor...";
    char log[4096], *at = log + sizeof priority - 1;
    int n = klogctl(READ_WHOLE_LOG, log, sizeof log - 1);
    log[n > 0 ? n : 0] = 0;
    if (strncmp(log, priority, sizeof priority - 1) != 0)
        return false;
    return strncmp(at + strspn(at, " "), first, sizeof first - 1) == 0;
}

void walls_raise(void)
{
    const char *profile = getenv(DEBUG_MARK);
    may_trace = may_trace || (profile && strcmp(profile, "debug") == 0);
    unsetenv(DEBUG_MARK);
    if (!is_init || is_gvisor())
        return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die("no new privileges");
    struct sock_fprog filter = map_filter(DEFAULT_FILTER);
    if (may_trace) {
        stricter = filter;
        filter = map_filter(DEBUG_FILTER);
    }
    if (!load(&filter))
        die("the system call filter");
    munmap(filter.filter, filter.len * sizeof *filter.filter);
}

bool walls_forbid_tracing(void) { return !stricter.filter || load(&stricter); }
