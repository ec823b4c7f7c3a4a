/*
 * Activity: processes that may have used disk space while the host is short of it. `write_bytes` of
 * /proc/<pid>/io does not show it: names and attributes use space too, which the journal's thread
 * writes and the kernel does not count per process. The counts of context switches are readable for
 * every process: one without any switch did nothing. A process that started and ended between two
 * scans is not seen; the next pid that the kernel would assign reveals it.
 */
#include "disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct act {
    pid_t pid;
    bool unknown;  /* its activity is unknown */
    uint64_t did;  /* differs when it did something */
    uint64_t seen; /* when that was seen last */
};
struct acts {
    struct act *p;
    size_t n, cap;
};

static struct acts known;
static uint64_t scans, since; /* activity up to this scan is ignored */
static int last_seen, last_seen_then;

/* ---- one process ----------------------------------------------------------------------------- */

#define FNV_START 0xCBF29CE484222325u
#define FNV_PRIME 0x100000001B3u

static void hash_value(uint64_t *hash, uint64_t value)
{
    for (int i = 0; i < 8; i++, value >>= 8)
        *hash = (*hash ^ (value & 0xFF)) * FNV_PRIME;
}

/* Finds a line of /proc/<pid>/status; in the name, which comes first, line breaks are escaped. */
static const char *value_after(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    return at ? at + strlen(line) : NULL;
}

static void add_thread(void *act, int tasks, const char *tid)
{
    /* The counts are at the end, and hosts with many CPUs have long lines before them */
    static char text[16384];
    struct act *a = act;
    char path[32];
    snprintf(path, sizeof path, "%.20s/status", tid);
    ssize_t n = proc_read(tasks, path, text, sizeof text);
    if (n <= 0)
        return; /* it has ended, which changes the sum */
    const char *state = value_after(text, "\nState:\t"), *asked = value_after(text, "\nvoluntary_ctxt_switches:\t"), *forced = value_after(text, "\nnonvoluntary_ctxt_switches:\t");
    if (!state || !asked || !forced || *state == 'R') {
        a->unknown = true;
        return;
    }
    hash_value(&a->did, (uint64_t)atoi(tid));
    hash_value(&a->did, strtoull(asked, NULL, 10));
    hash_value(&a->did, strtoull(forced, NULL, 10));
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void add(void *acts, int proc, const char *name)
{
    struct acts *s = acts;
    struct act one = {.pid = atoi(name), .did = FNV_START};
    /* sbxd and its shims are always active, and hide nothing. */
    if (one.pid == getpid() || proc_parent(one.pid) == getpid())
        return;
    proc_each_thread(proc, name, add_thread, &one);
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct act *p = realloc(s->p, cap * sizeof *p);
        if (!p)
            return;
        s->p = p;
        s->cap = cap;
    }
    s->p[s->n++] = one;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct act *)a)->pid, y = ((const struct act *)b)->pid;
    return (x > y) - (x < y);
}

static struct act *find(const struct acts *s, pid_t pid)
{
    struct act key = {.pid = pid};
    return s->n ? bsearch(&key, s->p, s->n, sizeof key, by_pid) : NULL;
}

/* The last pid or tid assigned in this container; 0 where it is not available. */
static int last_number(void)
{
    char text[128];
    const char *last = proc_read(AT_FDCWD, "/proc/loadavg", text, sizeof text) > 0 ? strrchr(text, ' ') : NULL;
    return last ? atoi(last + 1) : 0;
}

void disk_activity_scan(void)
{
    struct acts now = {0};
    scans++;
    last_seen = last_number();
    proc_each(add, &now);
    if (now.n)
        qsort(now.p, now.n, sizeof *now.p, by_pid);
    for (size_t i = 0; i < now.n; i++) {
        struct act *old = find(&known, now.p[i].pid);
        now.p[i].seen = old && !now.p[i].unknown && old->did == now.p[i].did ? old->seen : scans;
    }
    free(known.p);
    known = now;
}

void disk_activity_reset(void)
{
    since = scans;
    last_seen_then = last_seen;
}

/* Also true for a process that was not scanned. */
bool disk_was_active(pid_t pid)
{
    const struct act *a = find(&known, pid);
    return !a || a->seen > since;
}

bool disk_any_active(void)
{
    bool any = !last_seen || last_seen != last_seen_then;
    for (size_t i = 0; i < known.n && !any; i++)
        any = known.p[i].seen > since;
    return any;
}
