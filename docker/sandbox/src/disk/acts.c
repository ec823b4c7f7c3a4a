/*
 * Who did anything that could take room, while the host is short of disk. What a process is said to have written
 * (`write_bytes` of /proc/<pid>/io) is not that: names and attributes take room too, which the journal's thread writes, and
 * so it is with what the kernel keeps no such count of. But everybody may see how often a thread was given a CPU and gave
 * it back: who slept all the time did nothing at all.
 *
 * What a process did that began and ended between two looks nobody knows: that there was one is seen by the next number
 * that the kernel would give.
 */
#include "disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct act {
    pid_t pid;
    bool unknown;  /* nothing can be said of it */
    uint64_t did;  /* differs when it did something */
    uint64_t look; /* when that was seen last */
};
struct acts {
    struct act *p;
    size_t n, cap;
};

static struct acts known;
static uint64_t looks, since; /* what was seen until then is forgotten */
static int newest, newest_then;

/* ---- one process -------------------------------------------------------------------------------------------- */

#define FNV_START 0xCBF29CE484222325u
#define FNV_PRIME 0x100000001B3u

static void mix(uint64_t *hash, uint64_t value)
{
    for (int i = 0; i < 8; i++, value >>= 8)
        *hash = (*hash ^ (value & 0xFF)) * FNV_PRIME;
}

/* A line of /proc/<pid>/status; the name, which comes first, has its line breaks escaped. */
static const char *after(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    return at ? at + strlen(line) : NULL;
}

static void add_thread(void *act, int tasks, const char *tid)
{
    static char text[16384]; /* what is wanted is the end, and hosts with many CPUs have long lines before it */
    struct act *a = act;
    char path[32];
    snprintf(path, sizeof path, "%.20s/status", tid);
    ssize_t n = proc_read(tasks, path, text, sizeof text);
    if (n <= 0)
        return; /* it has ended, which changes the sum */
    const char *state = after(text, "\nState:\t"), *asked = after(text, "\nvoluntary_ctxt_switches:\t"), *forced = after(text, "\nnonvoluntary_ctxt_switches:\t");
    if (!state || !asked || !forced || *state == 'R') {
        a->unknown = true;
        return;
    }
    mix(&a->did, (uint64_t)atoi(tid));
    mix(&a->did, strtoull(asked, NULL, 10));
    mix(&a->did, strtoull(forced, NULL, 10));
}

/* ---- all of them -------------------------------------------------------------------------------------------- */

static void add(void *acts, int proc, const char *name)
{
    struct acts *s = acts;
    struct act one = {.pid = atoi(name), .did = FNV_START};
    /* We and our shims run all the time, and hide nothing. */
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

/* The number that was given to a process or a thread of this container last; 0 where it is not told. */
static int newest_number(void)
{
    char text[128];
    const char *last = proc_read(AT_FDCWD, "/proc/loadavg", text, sizeof text) > 0 ? strrchr(text, ' ') : NULL;
    return last ? atoi(last + 1) : 0;
}

void disk_acts_look(void)
{
    struct acts now = {0};
    looks++;
    newest = newest_number();
    proc_each(add, &now);
    if (now.n)
        qsort(now.p, now.n, sizeof *now.p, by_pid);
    for (size_t i = 0; i < now.n; i++) {
        struct act *old = find(&known, now.p[i].pid);
        now.p[i].look = old && !now.p[i].unknown && old->did == now.p[i].did ? old->look : looks;
    }
    free(known.p);
    known = now;
}

void disk_acts_forget(void)
{
    since = looks;
    newest_then = newest;
}

/* Of whom nothing is known as well. */
bool disk_acted(pid_t pid)
{
    const struct act *a = find(&known, pid);
    return !a || a->look > since;
}

bool disk_anybody_acted(void)
{
    bool any = !newest || newest != newest_then;
    for (size_t i = 0; i < known.n && !any; i++)
        any = known.p[i].look > since;
    return any;
}
