/* Base: clock, fatal errors, start parameters and event sources. */
#include "base.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

bool is_init, listens, may_trace;
const char *workspace_path = "/workspace";
int workspace_fd;
const char *tmp_dirs[4];
int epoll_fd;
sigset_t all_signals;
uint64_t lease_ms = 600000;

uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

_Noreturn void die(const char *what)
{
    fprintf(stderr, "sbxd: %s: %s\n", what, strerror(errno));
    _exit(1);
}

bool poll_add(int fd, uint32_t events, struct source *src)
{
    struct epoll_event e = {.events = events, .data.ptr = src};
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

bool poll_remove(int fd) { return epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL) == 0; }

/*
 * Closing is not enough: a shim that was just forked holds a copy, and epoll would continue to
 * report it.
 */
void poll_close(int *fd)
{
    if (*fd < 0)
        return;
    poll_remove(*fd);
    close(*fd);
    *fd = -1;
}
