/*
 * Who may hold bytes that no count can see: deleted files take room as long as anybody holds them, and there are three
 * ways to hold one unseen. A process that does not let itself be looked at (PR_SET_DUMPABLE, or a program without
 * permission to read); a mapping without a descriptor, whose length says nothing about the file; a descriptor on its way
 * through a Unix socket. Each leaves a trace that tells who, though not how much.
 */
#include "disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"

struct search {
    bool found;
};

/* Lines of /proc/<pid>/maps: whether one is a deleted file of the workspace. */
static bool maps_deleted(int thread)
{
    static const char end[] = " (deleted)\n";
    int fd = openat(thread, "maps", O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    char *line = NULL;
    size_t size = 0, prefix = strlen(workspace_path);
    ssize_t n;
    bool found = false;
    while (f && !found && (n = getline(&line, &size, f)) > 0) {
        const char *path = strchr(line, '/');
        found = path && n > (ssize_t)sizeof end && strcmp(line + n - (sizeof end - 1), end) == 0 && strncmp(path, workspace_path, prefix) == 0;
    }
    free(line);
    if (f)
        fclose(f);
    return found;
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

static bool socket_holds(int thread)
{
    char raw[4096] __attribute__((aligned(8)));
    int fds = openat(thread, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* In a container nobody is somebody else's: who cannot be looked at has made himself so. */
    bool found = fds < 0 && errno == EACCES && is_init;
    long n;
    while (fds >= 0 && !found && (n = syscall(SYS_getdents64, fds, raw, sizeof raw)) > 0)
        for (long at = 0; at < n && !found;) {
            struct dirent64 *d = (struct dirent64 *)(void *)(raw + at);
            char target[16] = {0};
            at += d->reclen;
            found = readlinkat(fds, d->name, target, sizeof target - 1) > 0 && strncmp(target, "socket:", 7) == 0 && sends_descriptors(thread, d->name);
        }
    if (fds >= 0)
        close(fds);
    return found;
}

static void look_at_thread(void *search, int tasks, const char *tid)
{
    struct search *s = search;
    int thread = s->found ? -1 : openat(tasks, tid, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (thread < 0)
        return;
    s->found = socket_holds(thread) || maps_deleted(thread);
    close(thread);
}

struct list {
    pid_t *pids;
    size_t n, max;
};

static void look_at_process(void *list, int proc, const char *pid)
{
    struct list *l = list;
    struct search s = {false};
    /* Neither we nor our shims let anybody look. */
    if (l->n == l->max || atoi(pid) == getpid() || proc_parent(atoi(pid)) == getpid())
        return;
    proc_each_thread(proc, pid, look_at_thread, &s);
    if (s.found)
        l->pids[l->n++] = atoi(pid);
}

size_t disk_hiders(pid_t *pids, size_t max)
{
    struct list l = {pids, 0, max};
    proc_each(look_at_process, &l);
    return l.n;
}
