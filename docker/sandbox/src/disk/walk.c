/*
 * Counts the workspace by visiting every file. One descriptor per level is open, and below
 * LEVELS_OPEN only the deepest: the way back up is "..", checked. A directory that its owner closed
 * is opened during the visit, or it would hide bytes.
 */
#include "disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEVELS_OPEN 256
#define RAW_BYTES 32768
/* Time for descriptors: every thread can have any number of them */
#define DESCRIPTORS_US 1000000
/* After the return to a level, when most of a large piece would be read again */
#define RAW_FIRST 2048

struct level {
    int fd; /* -1: closed, being too far up */
    ino_t ino;
    int64_t at;     /* where to read on */
    mode_t restore; /* its mode, with S_IFDIR; 0: its mode was left alone */
};

struct inodes {
    ino_t *slots; /* 0 = free */
    size_t n, cap;
};

struct walk {
    struct level *levels;
    size_t depth, cap;
    dev_t dev;
    struct inodes linked;
    struct disk_count count;
    void (*on_progress)(void);
    uint64_t until_us; /* for descriptors */
    char raw[RAW_BYTES] __attribute__((aligned(8)));
};

/* Returns true if it was new. */
static bool inodes_add(struct inodes *s, ino_t ino)
{
    if (s->n * 2 >= s->cap) {
        struct inodes more = {calloc(s->cap ? s->cap * 2 : 256, sizeof *more.slots), 0, s->cap ? s->cap * 2 : 256};
        if (!more.slots)
            return true; /* counted twice rather than not at all */
        for (size_t i = 0; i < s->cap; i++)
            if (s->slots[i])
                inodes_add(&more, s->slots[i]);
        free(s->slots);
        *s = more;
    }
    size_t i = (size_t)((uint64_t)ino * 0x9E3779B97F4A7C15u >> 20) & (s->cap - 1);
    while (s->slots[i] && s->slots[i] != ino)
        i = (i + 1) & (s->cap - 1);
    if (s->slots[i])
        return false;
    s->slots[i] = ino;
    s->n++;
    return true;
}

static void count_inode(struct walk *w, const struct stat *st)
{
    if (st->st_nlink > 1 && !S_ISDIR(st->st_mode) && !inodes_add(&w->linked, st->st_ino))
        return;
    w->count.bytes += (uint64_t)st->st_blocks * 512;
}

/* ---- down and up ----------------------------------------------------------------------------- */

static void close_level(struct level *l)
{
    struct stat st;
    if (l->restore && fstat(l->fd, &st) == 0 && st.st_mode == (l->restore | 0700))
        fchmod(l->fd, l->restore & 07777);
    close(l->fd);
}

static bool push_level(struct walk *w, int fd, ino_t ino, mode_t restore)
{
    if (w->depth == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 64;
        struct level *levels = realloc(w->levels, cap * sizeof *levels);
        if (!levels)
            return false;
        w->levels = levels;
        w->cap = cap;
    }
    if (w->depth > LEVELS_OPEN) {
        struct level *above = &w->levels[w->depth - 1];
        close(above->fd);
        above->fd = -1;
    }
    w->levels[w->depth++] = (struct level){fd, ino, 0, restore};
    return true;
}

/* A directory that has vanished, or cannot be entered, is skipped. */
static bool push_directory(struct walk *w, int dir, const char *name, const struct stat *st)
{
    mode_t closed = (st->st_mode & 0500) != 0500 && st->st_uid == getuid() ? st->st_mode : 0;
    if (closed && fchmodat(dir, name, (closed & 07777) | 0700, 0) < 0)
        return true;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return true;
    if (push_level(w, fd, st->st_ino, closed))
        return true;
    close(fd);
    return false;
}

/* False when the directory above has moved. */
static bool pop_level(struct walk *w)
{
    struct level *here = &w->levels[w->depth - 1];
    bool fine = true;
    if (w->depth > 1 && here[-1].fd < 0) {
        struct stat st;
        here[-1].fd = openat(here->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fine = here[-1].fd >= 0 && fstat(here[-1].fd, &st) == 0 && st.st_ino == here[-1].ino && st.st_dev == w->dev;
    }
    close_level(here);
    w->depth--;
    return fine;
}

/* Counts one name; returns true for a directory to visit. */
static bool count_name(struct walk *w, int dir, const char *name, struct stat *st)
{
    if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) < 0 || st->st_dev != w->dev)
        return false;
    w->count.entries++;
    count_inode(w, st);
    return S_ISDIR(st->st_mode);
}

static bool walk_all(struct walk *w, uint64_t most)
{
    size_t piece = RAW_BYTES;
    while (w->depth) {
        struct level *here = &w->levels[w->depth - 1];
        if (here->at && piece == RAW_FIRST)
            lseek(here->fd, here->at, SEEK_SET);
        long n = syscall(SYS_getdents64, here->fd, w->raw, piece);
        if (n <= 0) {
            if (!pop_level(w))
                return false;
            piece = RAW_FIRST;
            continue;
        }
        piece = RAW_BYTES;
        w->on_progress();
        for (long at = 0; at < n;) {
            struct dirent64 *d = (struct dirent64 *)(void *)(w->raw + at);
            struct stat st;
            at += d->reclen;
            here->at = d->off;
            if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0 || !count_name(w, here->fd, d->name, &st))
                continue;
            size_t depth = w->depth;
            if (!push_directory(w, here->fd, d->name, &st))
                return false;
            if (w->depth > depth)
                break;
        }
        if (most && w->count.entries > most)
            return true;
    }
    return true;
}

/* ---- deleted, but still open ----------------------------------------------------------------- */

/* Outside a container most deleted files on the disk are not ours. */
static bool is_ours(int fds, const char *name)
{
    char target[4352];
    size_t prefix = strlen(workspace_path);
    return is_init || (readlinkat(fds, name, target, sizeof target) > (ssize_t)prefix && strncmp(target, workspace_path, prefix) == 0);
}

/* By its inode, not its name: its path may be longer than a link of /proc can show. */
static void count_if_deleted(struct walk *w, int fds, const char *name)
{
    struct stat st;
    if (is_ours(fds, name) && fstatat(fds, name, &st, 0) == 0 && st.st_nlink == 0 && st.st_dev == w->dev && inodes_add(&w->linked, st.st_ino))
        w->count.bytes += (uint64_t)st.st_blocks * 512;
}

static void count_of_thread(void *walk, int tasks, const char *tid)
{
    struct walk *w = walk;
    char path[32];
    long n;
    snprintf(path, sizeof path, "%.20s/fd", tid);
    w->on_progress();
    int fds = now_us() < w->until_us ? openat(tasks, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    while (fds >= 0 && now_us() < w->until_us && (n = syscall(SYS_getdents64, fds, w->raw, sizeof w->raw)) > 0) {
        w->on_progress();
        for (long at = 0; at < n;) {
            struct dirent64 *d = (struct dirent64 *)(void *)(w->raw + at);
            at += d->reclen;
            if (d->name[0] != '.')
                count_if_deleted(w, fds, d->name);
        }
    }
    if (fds >= 0)
        close(fds);
}

/*
 * Every thread can have its own descriptors, the first one even none. A running program is held as
 * well. hidden.c finds the holder of more descriptors than there is time for.
 */
static void count_of_process(void *walk, int proc, const char *pid)
{
    char path[32];
    pid_t self = getpid();
    /* Outside a container most processes are not ours. */
    if (!is_init && !proc_ancestor(atoi(pid), &self, 1))
        return;
    snprintf(path, sizeof path, "%.20s/exe", pid);
    count_if_deleted(walk, proc, path);
    proc_each_thread(proc, pid, count_of_thread, walk);
}

bool disk_walk(int root, uint64_t most, struct disk_count *out, void (*on_progress)(void))
{
    struct walk *w = calloc(1, sizeof *w);
    struct stat st;
    int top = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool fine = w && top >= 0 && fstat(top, &st) == 0;
    if (fine) {
        w->dev = st.st_dev;
        w->on_progress = on_progress;
        w->count.bytes = (uint64_t)st.st_blocks * 512;
        fine = push_level(w, top, st.st_ino, 0);
    }
    if (fine) {
        top = -1;
        fine = walk_all(w, most);
        while (w->depth) {
            struct level *l = &w->levels[--w->depth];
            if (l->fd >= 0)
                close_level(l);
        }
        w->until_us = now_us() + DESCRIPTORS_US;
        proc_each(count_of_process, w);
        *out = w->count;
    }
    if (top >= 0)
        close(top);
    if (w) {
        free(w->levels);
        free(w->linked.slots);
    }
    free(w);
    return fine;
}
