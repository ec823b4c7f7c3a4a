/*
 * Hidden bytes: deleted files use space as long as a process holds them, and there are three ways
 * to hold one unseen. A process that cannot be inspected (PR_SET_DUMPABLE, or a program without
 * read permission); a mapping without a descriptor, whose length does not show the size of the
 * file; a descriptor in flight through a Unix socket. Each reveals the holder, though not the size.
 * A process that makes the scan slow counts as a holder: the time is bounded per process and in
 * total. Honest programs do these things too, for example ssh-agent. A process that was inactive
 * (activity.c) has used no space and is spared, unless so much is missing that it may hold bytes
 * for another one.
 */
#include "disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAPS_BYTES (512u << 10) /* of /proc/<pid>/maps: thousands of mappings */
/* CPU time. Wall time may be WAITING times as long: waiting for a CPU is no sign of hiding. */
#define PROCESS_US 50000
#define ALL_US 500000
#define WAITING 10
/* A forked process before its exec may still be sbxd, which cannot be inspected either */
#define SETTLE_US 20000

/* ---- one process ----------------------------------------------------------------------------- */

struct moment {
    uint64_t cpu_us, clock_us;
};

struct search {
    struct moment until;
    void (*on_progress)(void);
    bool found, late, mapped; /* mapped: the memory, which all threads share, has been scanned */
};

static struct moment deadline_after(uint64_t us)
{
    struct timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (struct moment){(uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000 + us, now_us() + us * WAITING};
}

static bool out_of_time(struct search *s)
{
    s->on_progress();
    struct moment now = deadline_after(0);
    s->late = now.cpu_us >= s->until.cpu_us || now.clock_us >= s->until.clock_us;
    return s->late;
}

/* True if one of these lines is about a deleted file of the workspace. */
static bool has_deleted_mapping(const char *lines)
{
    static const char end[] = " (deleted)";
    for (const char *line = lines; *line;) {
        const char *stop = strchrnul(line, '\n'), *path = memchr(line, '/', (size_t)(stop - line));
        if (path && stop - path > (ptrdiff_t)(sizeof end - 1) && memcmp(stop - (sizeof end - 1), end, sizeof end - 1) == 0 &&
            strncmp(path, workspace_path, strlen(workspace_path)) == 0)
            return true;
        line = *stop ? stop + 1 : stop;
    }
    return false;
}

static void scan_maps(struct search *s, int thread)
{
    /* The kernel gives whole lines as long as one fits, and the longest has a path of 4 KiB */
    static char text[32768];
    int fd = openat(thread, "maps", O_RDONLY | O_CLOEXEC);
    size_t all = 0, kept = 0;
    ssize_t n;
    while (fd >= 0 && !s->found && (n = read(fd, text + kept, sizeof text - 1 - kept)) > 0) {
        s->mapped = true;
        all += (size_t)n;
        text[kept + (size_t)n] = 0;
        char *last = strrchr(text, '\n');
        s->late = all > MAPS_BYTES || (!last && kept + (size_t)n == sizeof text - 1);
        s->found = s->late || has_deleted_mapping(text) || out_of_time(s);
        kept = last ? strlen(last + 1) : kept + (size_t)n;
        memmove(text, last ? last + 1 : text, kept);
    }
    if (fd >= 0)
        close(fd);
}

static bool sends_descriptors(int thread, const char *fd)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "fdinfo/%.20s", fd);
    if (proc_read(thread, path, text, sizeof text) <= 0)
        return false;
    const char *at = strstr(text, "\nscm_fds:");
    return at && atoi(at + 9) > 0;
}

/*
 * Its memory may be freed before its pid is: until it is reaped, the kernel gives its files to
 * root.
 */
static bool is_ending(int thread)
{
    enum { PF_EXITING = 4 };
    char text[512], state;
    unsigned flags;
    const char *end = proc_read(thread, "stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (!end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
        return true;
    return state == 'Z' || state == 'X' || flags & PF_EXITING;
}

static void scan_sockets(struct search *s, int thread)
{
    char raw[4096] __attribute__((aligned(8)));
    int fds = openat(thread, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* In a container all processes are ours: an uninspectable one has chosen to be. */
    s->found = fds < 0 && errno == EACCES && is_init && !is_ending(thread);
    long n;
    while (fds >= 0 && !s->found && (n = syscall(SYS_getdents64, fds, raw, sizeof raw)) > 0) {
        s->found = out_of_time(s);
        for (long at = 0; at < n && !s->found;) {
            struct dirent64 *d = (struct dirent64 *)(void *)(raw + at);
            char target[16] = {0};
            at += d->reclen;
            s->found = readlinkat(fds, d->name, target, sizeof target - 1) > 0 && strncmp(target, "socket:", 7) == 0 && sends_descriptors(thread, d->name);
        }
    }
    if (fds >= 0)
        close(fds);
}

static void scan_thread(void *search, int tasks, const char *tid)
{
    struct search *s = search;
    int thread = s->found ? -1 : openat(tasks, tid, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (thread < 0)
        return;
    scan_sockets(s, thread);
    if (!s->found && !s->mapped)
        scan_maps(s, thread);
    close(thread);
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct suspect {
    pid_t pid;
    uint64_t since_us;
};

/* Suspects of the last scan. For the watcher only. */
static struct suspect before[DISK_WRITERS_MAX];
static size_t before_n;

struct list {
    struct suspect found[DISK_WRITERS_MAX];
    size_t n;
    bool sleepers;
    struct moment until;
    void (*on_progress)(void);
};

static uint64_t suspected_since(pid_t pid)
{
    for (size_t i = 0; i < before_n; i++)
        if (before[i].pid == pid)
            return before[i].since_us;
    return now_us();
}

static void scan_process(void *list, int proc, const char *name)
{
    struct list *l = list;
    struct moment until = deadline_after(PROCESS_US);
    pid_t pid = atoi(name);
    /* sbxd and its shims cannot be inspected. */
    if (l->n == DISK_WRITERS_MAX || pid == getpid() || proc_parent(pid) == getpid())
        return;
    if (until.cpu_us > l->until.cpu_us || until.clock_us > l->until.clock_us)
        until = l->until;
    struct search s = {.until = until, .on_progress = l->on_progress};
    proc_each_thread(proc, name, scan_thread, &s);
    /*
     * A process that uses up the time is a suspect in any case, or the others would never be
     * scanned.
     */
    if (s.found && (s.late || l->sleepers || disk_was_active(pid)))
        l->found[l->n++] = (struct suspect){pid, suspected_since(pid)};
}

void disk_hidden_reset(void) { before_n = 0; }

size_t disk_hidden_holders(pid_t *pids, size_t max, bool sleepers, void (*on_progress)(void))
{
    struct list l = {.sleepers = sleepers, .until = deadline_after(ALL_US), .on_progress = on_progress};
    size_t n = 0;
    proc_each(scan_process, &l);
    uint64_t now = now_us();
    for (size_t i = 0; i < l.n && n < max; i++)
        if (now - l.found[i].since_us >= SETTLE_US)
            pids[n++] = l.found[i].pid;
    memcpy(before, l.found, l.n * sizeof *before);
    before_n = l.n;
    return n;
}
