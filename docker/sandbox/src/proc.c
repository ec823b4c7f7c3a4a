/*
 * The process tree, from /proc, and signals to a subtree. In a container (sbxd is PID 1) the PID
 * namespace is its own and a plain kill is enough. Elsewhere a pid from /proc may have been reused,
 * so the processes are first pinned by pidfds and the tree is read again: only those below the root
 * in both readings are signalled.
 */
#include "base.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct process {
    pid_t pid, parent;
    bool alive;
    int8_t below; /* -1: not computed yet */
};

struct tree {
    struct process *p;
    size_t n, cap;
};

/* Closes `dir`. */
static void each_number(int dir, void (*each)(void *context, int dir, const char *number), void *context)
{
    char raw[8192] __attribute__((aligned(8)));
    long n;
    while (dir >= 0 && (n = syscall(SYS_getdents64, dir, raw, sizeof raw)) > 0)
        for (long at = 0; at < n;) {
            struct dirent64 *d = (struct dirent64 *)(void *)(raw + at);
            at += d->reclen;
            if (d->name[0] >= '1' && d->name[0] <= '9')
                each(context, dir, d->name);
        }
    if (dir >= 0)
        close(dir);
}

void proc_each(void (*each)(void *context, int proc, const char *pid), void *context)
{
    each_number(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), each, context);
}

void proc_each_thread(int proc, const char *pid, void (*each)(void *context, int tasks, const char *tid), void *context)
{
    char path[32];
    snprintf(path, sizeof path, "%.20s/task", pid);
    each_number(openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), each, context);
}

ssize_t proc_read(int at, const char *path, char *text, size_t size)
{
    int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n;
}

pid_t proc_parent(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (proc_read(AT_FDCWD, path, text, sizeof text) <= 0)
        return 0;
    const char *end = strrchr(text, ')');
    int parent;
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

pid_t proc_ancestor(pid_t pid, const pid_t *among, size_t n)
{
    for (int hops = 0; pid > 1 && hops < 1024; hops++, pid = proc_parent(pid))
        for (size_t i = 0; i < n; i++)
            if (among[i] == pid)
                return pid;
    return 0;
}

static void read_process(void *tree, int proc, const char *name)
{
    struct tree *t = tree;
    char path[32], text[512];
    snprintf(path, sizeof path, "%.20s/stat", name);
    if (proc_read(proc, path, text, sizeof text) <= 0)
        return;
    const char *end = strrchr(text, ')'); /* the name may contain anything, also ')' */
    char state;
    int parent, threads;
    if (!end || sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d", &state, &parent, &threads) != 3)
        return;
    /* A process whose first thread has ended appears as a zombie while its other threads run. */
    bool alive = (state != 'Z' && state != 'X') || threads > 1;
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 256;
        struct process *p = realloc(t->p, cap * sizeof *p);
        if (!p)
            return;
        t->p = p;
        t->cap = cap;
    }
    t->p[t->n++] = (struct process){atoi(name), parent, alive, -1};
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
    return (x > y) - (x < y);
}

static struct process *find(const struct tree *t, pid_t pid)
{
    struct process key = {.pid = pid};
    return t->n == 0 ? NULL : bsearch(&key, t->p, t->n, sizeof key, by_pid);
}

/* Walks up from each process until the answer is known, then stores it along the path. */
static void mark_descendants(struct tree *t, pid_t root, const pid_t *except, size_t excepts)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->p[i].pid == root)
            t->p[i].below = 0;
    for (size_t i = 0; i < excepts; i++) {
        struct process *p = find(t, except[i]);
        if (p)
            p->below = 0;
    }
    for (size_t i = 0; i < t->n; i++) {
        int8_t answer = 0;
        struct process *p = &t->p[i];
        size_t hops = 0;
        for (; p && p->below < 0 && hops++ <= t->n; p = find(t, p->parent))
            if (p->parent == root) {
                answer = 1;
                break;
            }
        if (p && p->below >= 0)
            answer = p->below;
        for (p = &t->p[i]; p && p->below < 0; p = find(t, p->parent))
            p->below = answer;
    }
}

static void read_tree(struct tree *t, pid_t root, const pid_t *except, size_t excepts)
{
    t->n = 0;
    proc_each(read_process, t);
    if (t->n == 0)
        return;
    qsort(t->p, t->n, sizeof *t->p, by_pid);
    mark_descendants(t, root, except, excepts);
}

static size_t signal_pinned(const struct tree *found, pid_t root, const pid_t *except, size_t excepts, int sig)
{
    enum { BATCH = 256 };
    struct tree again = {0};
    size_t count = 0;
    for (size_t i = 0; i < found->n;) {
        pid_t pids[BATCH];
        int fds[BATCH];
        size_t n = 0;
        for (; i < found->n && n < BATCH; i++)
            if (found->p[i].below == 1 && found->p[i].alive) {
                int fd = (int)syscall(SYS_pidfd_open, found->p[i].pid, 0);
                if (fd < 0)
                    continue;
                pids[n] = found->p[i].pid;
                fds[n++] = fd;
            }
        if (n)
            read_tree(&again, root, except, excepts);
        for (size_t k = 0; k < n; k++) {
            struct process *p = find(&again, pids[k]);
            if (p && p->below == 1 && syscall(SYS_pidfd_send_signal, fds[k], sig, NULL, 0) == 0)
                count++;
            close(fds[k]);
        }
    }
    free(again.p);
    return count;
}

size_t proc_signal_tree(pid_t root, const pid_t *except, size_t excepts, int sig)
{
    struct tree t = {0};
    size_t count = 0;
    read_tree(&t, root, except, excepts);
    if (is_init)
        for (size_t i = 0; i < t.n; i++)
            count += t.p[i].below == 1 && t.p[i].alive && kill(t.p[i].pid, sig) == 0;
    else
        count = signal_pinned(&t, root, except, excepts, sig);
    free(t.p);
    return count;
}

size_t proc_count_tree(pid_t root)
{
    struct tree t = {0};
    size_t count = 0;
    read_tree(&t, root, NULL, 0);
    for (size_t i = 0; i < t.n; i++)
        count += t.p[i].below == 1 && t.p[i].alive;
    free(t.p);
    return count;
}

size_t proc_kill_tree(pid_t root, const pid_t *except, size_t excepts)
{
    /* A stopped process cannot fork: stop until the number no longer grows, then kill. */
    size_t before = proc_signal_tree(root, except, excepts, SIGSTOP);
    for (int round = 0; before > 1 && round < 8; round++) {
        size_t now = proc_signal_tree(root, except, excepts, SIGSTOP);
        if (now <= before)
            break;
        before = now;
    }
    return before ? proc_signal_tree(root, except, excepts, SIGKILL) : 0;
}
