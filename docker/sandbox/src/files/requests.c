/*
 * File requests, except writing (writes.c), removing (remove.c), comparing (changes.c) and watching
 * (watches.c). They return 0 or an errno, which precedes their bytes of `out` in the answer.
 */
#include "files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_MAX (MAX_PAYLOAD - 64)

/* Milliseconds since 1970, within the controller's number range: a file may have any date. */
static uint64_t modified_ms(const struct stat *st)
{
    const int64_t latest_s = (1ll << 53) / 1000 - 1;
    if (st->st_mtim.tv_sec < 0)
        return 0;
    int64_t s = st->st_mtim.tv_sec < latest_s ? st->st_mtim.tv_sec : latest_s;
    return (uint64_t)s * 1000 + (uint64_t)st->st_mtim.tv_nsec / 1000000;
}

static void put_stat(struct buf *b, const struct stat *st)
{
    buf8(b, S_ISREG(st->st_mode) ? 1 : S_ISDIR(st->st_mode) ? 2 : S_ISLNK(st->st_mode) ? 3 : 4);
    buf32(b, st->st_mode & 07777);
    buf64(b, (uint64_t)st->st_size);
    buf64(b, modified_ms(st));
}

static int do_stat(const char *path, uint64_t resolve, struct buf *out)
{
    struct stat st;
    int fd = open_beneath(workspace_fd, path, O_PATH | (resolve ? 0 : O_NOFOLLOW), 0, resolve);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &st) < 0 ? errno : 0;
    close(fd);
    if (!error)
        put_stat(out, &st);
    return error;
}

/* One page: entries up to about 48 KiB, then the position of the next page. */
static int do_list(const char *path, uint64_t resolve, uint64_t from, struct buf *out, uint16_t *flags)
{
    char raw[32768] __attribute__((aligned(8)));
    int fd = open_beneath(workspace_fd, path, O_RDONLY | O_DIRECTORY, 0, resolve);
    if (fd < 0)
        return errno;
    if (from && lseek(fd, (off_t)from, SEEK_SET) < 0) {
        int error = errno;
        close(fd);
        return error;
    }
    size_t next_at = out->len;
    buf64(out, 0);
    size_t count_at = out->len;
    buf32(out, 0);
    uint32_t count = 0;
    uint64_t next = from;
    bool more = true;
    while (more && out->len < (16u << 10)) {
        long n = syscall(SYS_getdents64, fd, raw, sizeof raw);
        if (n <= 0) {
            more = false;
            break;
        }
        for (long at = 0; at < n && out->len < (48u << 10);) {
            struct dirent64 *d = (struct dirent64 *)(void *)(raw + at);
            at += d->reclen;
            next = (uint64_t)d->off;
            struct stat st;
            if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0 || fstatat(fd, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                continue;
            size_t name = strlen(d->name);
            put_stat(out, &st);
            buf32(out, (uint32_t)name);
            buf_bytes(out, d->name, name);
            count++;
        }
        if (out->len >= (48u << 10))
            break;
    }
    close(fd);
    put64(out->p + next_at, next);
    put32(out->p + count_at, count);
    if (more)
        *flags |= F_MORE;
    return 0;
}

static int open_regular(const char *path, uint64_t resolve, struct stat *st)
{
    int fd = open_beneath(workspace_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, resolve);
    if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))) {
        close(fd);
        fd = -1;
        errno = S_ISDIR(st->st_mode) ? EISDIR : ENXIO;
    }
    return fd;
}

static int do_read(const char *path, uint64_t resolve, uint64_t offset, uint32_t length, struct buf *out)
{
    struct stat st;
    int fd = open_regular(path, resolve, &st);
    if (fd < 0)
        return errno;
    buf64(out, (uint64_t)st.st_size);
    buf64(out, st.st_ino);
    buf64(out, (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec);
    if (length > READ_MAX)
        length = READ_MAX;
    size_t start = out->len, got = 0;
    uint8_t *p = buf_add(out, length);
    int error = 0;
    while (got < length && offset <= (uint64_t)INT64_MAX - length) {
        ssize_t r = pread(fd, p + got, length - got, (off_t)(offset + got));
        if (r < 0 && errno != EINTR)
            error = errno;
        if (r == 0 || error)
            break;
        if (r > 0)
            got += (size_t)r;
    }
    out->len = start + got;
    close(fd);
    return error;
}

static int do_mkdir(char *path, uint64_t resolve) { return make_directories(path, resolve) < 0 ? errno : 0; }

static int do_resolve(const char *path, struct buf *out)
{
    char resolved[PATH_BYTES + 1];
    int error = walk_resolve(workspace_fd, path, resolved);
    size_t n = error ? 0 : strlen(resolved);
    buf32(out, (uint32_t)n);
    buf_bytes(out, resolved, n);
    return error;
}

static int do_rename(char *from, char *to, bool is_new, uint64_t resolve)
{
    const char *from_name, *to_name;
    int a = open_parent(from, &from_name, resolve);
    if (a < 0)
        return errno;
    int b = open_parent(to, &to_name, resolve), error = errno;
    if (b >= 0) {
        error = rename_to(a, from_name, b, to_name, is_new);
        close(b);
    }
    close(a);
    return error;
}

/* ---- dispatch -------------------------------------------------------------------------------- */

int file_request(const struct job *j, struct buf *out, uint16_t *flags)
{
    struct reader r = {j->payload, j->n, false};
    char path[PATH_BYTES + 1], other[PATH_BYTES + 1];
    if (j->type == T_FILE_WRITE)
        return write_piece(j, &r);
    if (j->type == T_FILE_SNAPSHOT || j->type == T_FILE_CHANGES) {
        uint32_t handle = rd32(&r);
        return r.bad ? EINVAL : j->type == T_FILE_SNAPSHOT ? take_snapshot(handle, out) : report_changes(handle, out);
    }
    if (j->type == T_FILE_WATCH) {
        uint32_t which = rd32(&r);
        return r.bad ? EINVAL : watch_directories(which, &r, out);
    }
    int error = take_path(&r, path);
    if (error)
        return error;
    uint64_t offset = j->type == T_FILE_LIST || j->type == T_FILE_READ ? rd64(&r) : 0;
    uint32_t length = j->type == T_FILE_READ ? rd32(&r) : 0;
    if (j->type == T_FILE_RENAME)
        error = take_path(&r, other);
    if (error || r.bad)
        return error ? error : EINVAL;
    uint64_t resolve = resolve_flags(j);
    switch (j->type) {
    case T_FILE_STAT:
        return do_stat(path, resolve, out);
    case T_FILE_LIST:
        return do_list(path, resolve, offset, out, flags);
    case T_FILE_READ:
        return do_read(path, resolve, offset, length, out);
    case T_FILE_MKDIR:
        return do_mkdir(path, resolve);
    case T_FILE_REMOVE:
        return remove_path(path, j->flags & F_RECURSIVE, resolve);
    case T_FILE_RESOLVE:
        return do_resolve(path, out);
    default:
        return do_rename(path, other, j->flags & F_NEW, resolve);
    }
}
