/*
 * OOM: makes the kernel kill commands before sbxd, and counts its kills.
 *
 * Score: a forked process inherits its parent's oom_score_adj, so sbxd raises its own to fork
 * a shim. The shim could not raise it: /proc/self/oom_score_adj belongs to a process's user only
 * while the process is dumpable, and then every command could open the shim's memory.
 *
 * Count: `oom_kill` of this cgroup, in memory.events (v2) or memory.oom_control (v1). One
 * descriptor stays open; a read costs a few microseconds.
 */
#include "commands.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COMMANDS_ABOVE 500
#define HIGHEST_SCORE 1000 /* Linux's */

static int fd = -1;
static int score_fd = -1;
static int own_score;

void oom_score_open(void)
{
    char text[16];
    score_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t n = score_fd < 0 ? 0 : pread(score_fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    own_score = atoi(text);
}

void oom_raise_score(bool on)
{
    char text[16];
    int raised = own_score + COMMANDS_ABOVE < HIGHEST_SCORE ? own_score + COMMANDS_ABOVE : HIGHEST_SCORE;
    if (score_fd >= 0)
        (void)!pwrite(score_fd, text, (size_t)snprintf(text, sizeof text, "%d", on ? raised : own_score), 0);
}

static bool try_open(const char *root, const char *group, const char *file)
{
    char path[4352];
    if (snprintf(path, sizeof path, "%s%s/%s", root, group, file) >= (int)sizeof path)
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

void oom_open(void)
{
    /*
     * Inside a container the cgroup's own directory is the mount point; outside it is named in
     * /proc/self/cgroup.
     */
    if (try_open("/sys/fs/cgroup", "", "memory.events") || (is_init && try_open("/sys/fs/cgroup/memory", "", "memory.oom_control")))
        return;
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[4096];
    while (f && fd < 0 && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        if (controllers[1] == 0)
            try_open("/sys/fs/cgroup", path, "memory.events");
        else if (strcmp(controllers + 1, "memory") == 0)
            try_open("/sys/fs/cgroup/memory", path, "memory.oom_control");
    }
    if (f)
        fclose(f);
}

uint64_t oom_kills(void)
{
    char text[1024];
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = 0;
    const char *at = strstr(text, "oom_kill ");
    return at ? strtoull(at + 9, NULL, 10) : 0;
}
