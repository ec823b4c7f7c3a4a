/* FILE_REMOVE, and emptying a directory however deep, wide or busy it is. */
#include "files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REMOVE_DEPTH 64

/*
 * Empty a directory. Deeper than REMOVE_DEPTH a subdirectory is first moved up to `top`, so neither the stack nor the
 * number of open files depends on what a user has built.
 */
int empty_directory(int dir, int top, int depth, unsigned *moved)
{
    char raw[4096] __attribute__((aligned(8)));
    for (bool again = true; again;) {
        again = false;
        if (lseek(dir, 0, SEEK_SET) < 0)
            return errno;
        long n;
        while ((n = syscall(SYS_getdents64, dir, raw, sizeof raw)) > 0)
            for (long at = 0; at < n;) {
                struct dirent64 *d = (struct dirent64 *)(void *)(raw + at);
                at += d->reclen;
                if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0)
                    continue;
                if (unlinkat(dir, d->name, 0) == 0 || errno == ENOENT)
                    continue;
                if (errno != EISDIR && errno != EPERM)
                    return errno;
                if (unlinkat(dir, d->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
                    continue;
                if (errno != ENOTEMPTY && errno != EEXIST)
                    return errno;
                if (depth >= REMOVE_DEPTH) {
                    char name[40];
                    snprintf(name, sizeof name, STAGING_PREFIX "deep-%u", ++*moved);
                    if (renameat(dir, d->name, top, name) < 0)
                        return errno;
                    again = true;
                    continue;
                }
                int sub = openat(dir, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (sub < 0)
                    return errno;
                int error = empty_directory(sub, top, depth + 1, moved);
                close(sub);
                if (!error && unlinkat(dir, d->name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENOTEMPTY)
                    error = errno;
                if (error)
                    return error;
                again = true; /* the directory changed under the listing; look once more */
            }
    }
    return 0;
}

int remove_path(char *path, bool recursive)
{
    const char *name;
    int dir = open_parent(path, &name);
    if (dir < 0)
        return errno;
    int error = unlinkat(dir, name, 0) < 0 ? errno : 0;
    if (error == EISDIR || error == EPERM)
        error = unlinkat(dir, name, AT_REMOVEDIR) < 0 ? errno : 0;
    if ((error == ENOTEMPTY || error == EEXIST) && recursive) {
        unsigned moved = 0;
        error = 0;
        for (int round = 0; round < 1000; round++) {
            int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            error = sub < 0 ? errno : empty_directory(sub, sub, 0, &moved);
            if (sub >= 0)
                close(sub);
            if (!error)
                error = unlinkat(dir, name, AT_REMOVEDIR) < 0 ? errno : 0;
            if (error != ENOTEMPTY && error != EEXIST) /* else: someone writes into it, or deep ones were moved up */
                break;
        }
    }
    close(dir);
    return error == ENOENT && recursive ? 0 : error;
}
