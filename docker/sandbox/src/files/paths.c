/*
 * Paths below the workspace, and the staging directory in it.
 *
 * Every path is opened with openat2 RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS from the workspace,
 * hence neither a symbolic link nor a concurrent rename leads outside. Where the kernel has no
 * openat2 (gVisor), walk.c does the same step by step.
 */
#include "files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CALL_OPENAT2 /* a test builds without it */
#define CALL_OPENAT2 SYS_openat2
#endif

int take_path(struct reader *r, char path[PATH_BYTES + 1])
{
    uint32_t n = rd32(r);
    const uint8_t *p = rdn(r, n);
    if (!p || memchr(p, 0, n))
        return EINVAL;
    if (n > PATH_BYTES)
        return ENAMETOOLONG;
    memcpy(path, p, n);
    path[n] = 0;
    return 0;
}

uint64_t resolve_flags(const struct job *j) { return j->flags & F_NO_LINKS ? RESOLVE_NO_SYMLINKS : 0; }

int open_beneath(int dir, const char *path, uint64_t flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .mode = mode, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve};
    long fd;
    int tries = 0;
    do /* EAGAIN: a rename during "..", hence try again */
        fd = syscall(CALL_OPENAT2, dir, path[0] ? path : ".", &how, sizeof how);
    while (fd < 0 && (errno == EINTR || errno == EAGAIN) && tries++ < 64);
    return fd < 0 && errno == ENOSYS ? walk_beneath(dir, path, flags, mode, resolve & RESOLVE_NO_SYMLINKS) : (int)fd;
}

/* The directory that holds the last component of `path`; `*name` points at that component. */
int open_parent(char *path, const char **name, uint64_t resolve)
{
    char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (**name == 0 || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0) {
        errno = EINVAL;
        return -1;
    }
    if (!slash)
        return open_beneath(workspace_fd, ".", O_PATH | O_DIRECTORY, 0, 0);
    *slash = 0;
    int fd = open_beneath(workspace_fd, path, O_PATH | O_DIRECTORY, 0, resolve);
    *slash = '/';
    return fd;
}

/* Makes every directory of `path`, one component at a time. */
int make_directories(char *path, uint64_t resolve)
{
    int dir = open_beneath(workspace_fd, ".", O_PATH | O_DIRECTORY, 0, 0);
    for (char *at = path; dir >= 0 && *at;) {
        char *end = strchrnul(at, '/'), kept = *end;
        *end = 0;
        if (*at && mkdirat(dir, at, 0755) < 0 && errno != EEXIST) {
            int error = errno;
            *end = kept;
            close(dir);
            errno = error;
            return -1;
        }
        /*
         * From the workspace again, not from `dir`: a symbolic link may lead up, as long as it
         * stays inside.
         */
        close(dir);
        dir = open_beneath(workspace_fd, path, O_PATH | O_DIRECTORY, 0, resolve);
        *end = kept;
        at = kept ? end + 1 : end;
    }
    if (dir < 0)
        return -1;
    close(dir);
    return 0;
}

int rename_to(int from_dir, const char *from, int to_dir, const char *to, bool is_new)
{
    struct stat st;
    if (!is_new)
        return renameat(from_dir, from, to_dir, to) < 0 ? errno : 0;
    if (renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    /* A file system without this flag: not atomic there. */
    if (fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return EEXIST;
    return errno != ENOENT || renameat(from_dir, from, to_dir, to) < 0 ? errno : 0;
}

int staging_dir(bool make)
{
    if (make && mkdirat(workspace_fd, STAGING_DIR, 0755) < 0 && errno != EEXIST)
        return -1;
    return open_beneath(workspace_fd, STAGING_DIR, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
}

int staging_dir_unlocked(void)
{
    struct stat st;
    int dir = staging_dir(false), error = errno;
    /*
     * By name where it cannot be opened: the owner could have done the same to any file that
     * replaces it.
     */
    if (dir < 0 && error == EACCES && fstatat(workspace_fd, STAGING_DIR, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
        fchmodat(workspace_fd, STAGING_DIR, (st.st_mode & 07777) | 0700, 0);
        return staging_dir(false);
    }
    if (dir >= 0 && fstat(dir, &st) == 0 && (st.st_mode & 0700) != 0700)
        fchmod(dir, (st.st_mode & 07777) | 0700);
    errno = error;
    return dir;
}

/*
 * A new file in the staging directory, or -1. The end of another write may remove the directory in
 * between.
 */
int create_staged(const char *name)
{
    int fd = -1;
    for (int tries = 0; fd < 0 && tries < 64; tries++) {
        int dir = staging_dir(true), error = errno;
        if (dir >= 0) {
            unlinkat(dir, name, 0);
            fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
            error = errno;
            close(dir);
        }
        errno = error;
        if (fd < 0 && error != ENOENT)
            break;
    }
    return fd;
}

int files_open_spool(const char *name)
{
    int fd = create_staged(name);
    return fd < 0 ? -errno : fd;
}

void staging_remove_if_empty(void) { unlinkat(workspace_fd, STAGING_DIR, AT_REMOVEDIR); }
