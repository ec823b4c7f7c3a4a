/*
 * FILE_REMOVE, and emptying a directory of any depth, width, activity or mode. An entry that cannot
 * be removed does not prevent the removal of others.
 */
#include "files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REMOVE_DEPTH 64
/* A directory that is not empty after so many is being filled by another process */
#define PASSES 8
#define MOST_SURPRISES 1000
#define MOST_ROUNDS 1000
/* A workspace has fewer names than this many directories of REMOVE_DEPTH levels hold */
#define MOST_MOVED (1u << 17)

struct emptying {
    int top;            /* entries too deep are moved up to here */
    unsigned moved;
    unsigned surprises; /* another process put something in its place */
    unsigned failures;
    int error; /* the first one */
};

static void empty(int dir, struct emptying *e, int depth);

static bool is_hopeless(const struct emptying *e) { return e->surprises >= MOST_SURPRISES || e->moved >= MOST_MOVED; }

static void record_failure(struct emptying *e, int error)
{
    if (!e->failures++)
        e->error = error;
}

/* By name: the owner could have done the same to any file that replaces it. */
static bool unlock(int dir, const char *name) { return errno == EACCES && fchmodat(dir, name, 0700, 0) == 0; }

/* Opens a directory, also one that its owner has closed. -1 with errno. */
static int open_subdirectory(int dir, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir, name, flags);
    return fd < 0 && unlock(dir, name) ? openat(dir, name, flags) : fd;
}

/* Names can be removed only from a writable directory. */
static void make_writable(int dir)
{
    struct stat st;
    if (fstat(dir, &st) == 0 && (st.st_mode & 0700) != 0700)
        fchmod(dir, (st.st_mode & 07777) | 0700);
}

/*
 * Below REMOVE_DEPTH, so that neither the stack nor the number of open files depends on a user's
 * tree.
 */
static bool move_up(int dir, const char *name, struct emptying *e)
{
    char to[40];
    snprintf(to, sizeof to, STAGING_PREFIX "deep-%u", ++e->moved);
    if (renameat(dir, name, e->top, to) == 0 || (unlock(dir, name) && renameat(dir, name, e->top, to) == 0))
        return true;
    record_failure(e, errno);
    return false;
}

/* Returns true when the directory has changed under its listing and must be listed again. */
static bool remove_entry(int dir, const char *name, struct emptying *e, int depth)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return false;
    if ((errno == EISDIR || errno == EPERM) && (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT))
        return false;
    if (errno != ENOTEMPTY && errno != EEXIST) {
        record_failure(e, errno);
        return false;
    }
    if (depth >= REMOVE_DEPTH)
        return move_up(dir, name, e);
    int sub = open_subdirectory(dir, name);
    if (sub < 0) {
        record_failure(e, errno);
        return false;
    }
    unsigned before = e->failures;
    empty(sub, e, depth + 1);
    close(sub);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    if (errno != ENOTEMPTY && errno != EEXIST) {
        record_failure(e, errno);
        return false;
    }
    if (e->failures != before)
        return false; /* already recorded, another pass is useless */
    e->surprises++;
    return true;
}

static void empty(int dir, struct emptying *e, int depth)
{
    char raw[4096] __attribute__((aligned(8)));
    bool again = true;
    make_writable(dir);
    for (unsigned pass = 0; again && !is_hopeless(e); pass++) {
        unsigned moved = e->moved;
        long n;
        again = false;
        if (lseek(dir, 0, SEEK_SET) < 0) {
            record_failure(e, errno);
            return;
        }
        while ((n = syscall(SYS_getdents64, dir, raw, sizeof raw)) > 0)
            for (long at = 0; at < n;) {
                struct dirent64 *d = (struct dirent64 *)(void *)(raw + at);
                at += d->reclen;
                if (strcmp(d->name, ".") != 0 && strcmp(d->name, "..") != 0)
                    again |= remove_entry(dir, d->name, e, depth);
            }
        e->surprises += again && pass >= PASSES && e->moved == moved;
    }
}

int empty_directory(int dir)
{
    struct emptying e = {.top = dir};
    empty(dir, &e, 0);
    return is_hopeless(&e) ? EAGAIN : e.error;
}

int remove_path(char *path, bool recursive, uint64_t resolve)
{
    const char *name;
    int dir = open_parent(path, &name, resolve);
    if (dir < 0)
        return errno;
    int error = unlinkat(dir, name, 0) < 0 ? errno : 0;
    if (error == EISDIR || error == EPERM)
        error = unlinkat(dir, name, AT_REMOVEDIR) < 0 ? errno : 0;
    for (int round = 0; recursive && (error == ENOTEMPTY || error == EEXIST); round++) {
        if (round == MOST_ROUNDS) {
            error = EAGAIN;
            break;
        }
        int sub = open_subdirectory(dir, name);
        error = sub < 0 ? errno : empty_directory(sub);
        if (sub >= 0)
            close(sub);
        if (!error)
            /* Not empty: another process writes into it */
            error = unlinkat(dir, name, AT_REMOVEDIR) < 0 ? errno : 0;
    }
    close(dir);
    return error == ENOENT && recursive ? 0 : error;
}
