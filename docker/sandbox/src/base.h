/* Base for all files. It names nothing of the folders above it. */
#ifndef SBXD_BASE_H
#define SBXD_BASE_H

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#define ID_BYTES 16
#define KEY_BYTES 32

/* ---- base.c ---------------------------------------------------------------------------------- */

extern bool is_init; /* we are PID 1 of a PID namespace */
extern bool listens; /* in a Pod: the wire is a relay's, which runs in our PID namespace */
extern bool may_trace; /* the engine lets commands that ask for it trace others (walls/) */
extern const char *workspace_path;
extern int workspace_fd;
extern const char *tmp_dirs[4];
extern int epoll_fd;
extern sigset_t all_signals;
extern uint64_t lease_ms; /* 0: none */

uint64_t now_us(void);
_Noreturn void die(const char *what);

/* A source of epoll events, with which `ready` is called. */
struct source {
    void (*ready)(struct source *src, uint32_t events);
    void *owner;
    int which;
};
bool poll_add(int fd, uint32_t events, struct source *src);
bool poll_remove(int fd);
void poll_close(int *fd);

/* Layout of getdents64. */
struct dirent64 {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

/* ---- proc.c: the process tree, and signals to it --------------------------------------------- */

/*
 * Calls `each` with every process in /proc: its number, and the descriptor of /proc for its files.
 */
void proc_each(void (*each)(void *context, int proc, const char *pid), void *context);
/* The same with every thread of a process, and the descriptor of its folder of threads. */
void proc_each_thread(int proc, const char *pid, void (*each)(void *context, int tasks, const char *tid), void *context);
/* 0 when there is no such process. */
pid_t proc_parent(pid_t pid);
/* The first of these that is `pid` or its ancestor; 0 when none is. */
pid_t proc_ancestor(pid_t pid, const pid_t *among, size_t n);
/*
 * Reads a small file of /proc as text; `at` as for openat. Returns its length, or -1; the text is
 * always terminated.
 */
ssize_t proc_read(int at, const char *path, char *text, size_t size);

/*
 * Signals every living descendant of `root`, except `except` and their descendants. Returns the
 * number found (without zombies).
 */
size_t proc_signal_tree(pid_t root, const pid_t *except, size_t excepts, int sig);
/* Living processes below `root`. */
size_t proc_count_tree(pid_t root);
/* Stops, then kills, everything below root. Returns the number found; call again until it is 0. */
size_t proc_kill_tree(pid_t root, const pid_t *except, size_t excepts);

#endif
