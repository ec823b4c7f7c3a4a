/*
 * Changes of the workspace between two moments, by inode, size and time of change of every file.
 * Snapshots are stored in memory under the controller's number. Files of git's and sbxd's own are
 * omitted.
 */
#include "files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_MAX 50000
#define NAMES_MAX (8u << 20)
#define SCAN_US 2000000
/* Limits of all snapshots together; the oldest are dropped. */
#define SNAPSHOTS_MAX 16
#define SNAPSHOTS_BYTES (24u << 20)
#define REPOSITORIES_MAX 8
#define ANSWER_BYTES (56u << 10)

/*
 * Omitted in the workspace, which is also the home directory: our files, and those that tools can
 * rebuild.
 */
static const char *const left_out[] = {STAGING_DIR, ".cache", ".npm"};
#define REPOSITORY ".git"

struct seen {
    uint64_t ino, size, changed_ns;
    uint32_t path; /* its start in `paths` */
};

struct snapshot {
    uint32_t handle;
    struct seen *files; /* sorted by path */
    size_t n, cap;
    struct buf paths; /* each ends in NUL */
};

/* A scan in progress. */
struct scan {
    struct snapshot *into;
    struct buf queue; /* paths of directories still to scan, each ending in NUL */
    size_t next;      /* the next one */
    struct buf repositories;
    uint32_t repositories_n;
    dev_t dev;
    uint64_t until_us;
    char path[PATH_BYTES + 1];
};

/* This controller's snapshots, the oldest first. For the file thread only. */
static struct snapshot snapshots[SNAPSHOTS_MAX];
static size_t snapshots_n;

static void free_snapshot(struct snapshot *s)
{
    free(s->files);
    free(s->paths.p);
    *s = (struct snapshot){0};
}

/* ---- looking --------------------------------------------------------------------------------- */

static const char *path_of(const struct snapshot *s, const struct seen *file) { return (const char *)s->paths.p + file->path; }

static int add_file(struct snapshot *s, const char *path, const struct stat *st)
{
    size_t length = strlen(path) + 1;
    if (s->n == FILES_MAX || s->paths.len + length > NAMES_MAX)
        return E2BIG;
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 256;
        struct seen *files = realloc(s->files, cap * sizeof *files);
        if (!files)
            return ENOMEM;
        s->files = files;
        s->cap = cap;
    }
    uint64_t changed_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
    s->files[s->n++] = (struct seen){st->st_ino, (uint64_t)st->st_size, changed_ns, (uint32_t)s->paths.len};
    buf_bytes(&s->paths, path, length);
    return 0;
}

static void add_repository(struct scan *s, const char *path)
{
    if (s->repositories_n == REPOSITORIES_MAX)
        return;
    s->repositories_n++;
    buf32(&s->repositories, (uint32_t)strlen(path));
    buf_bytes(&s->repositories, path, strlen(path));
}

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strcmp(name, left_out[i]) == 0)
            return true;
    return false;
}

/* `s->path` holds the directory, of `length` bytes; the name is appended to it. */
static int look_at(struct scan *s, int dir, size_t length, const struct dirent64 *d)
{
    struct stat st;
    size_t name = strlen(d->name);
    bool top = length == 0;
    if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0 || (top && is_left_out(d->name)))
        return 0;
    if (strcmp(d->name, REPOSITORY) == 0) {
        s->path[length] = 0;
        add_repository(s, s->path);
        return 0;
    }
    /* A path too long for a request is omitted. */
    if (length + 1 + name > PATH_BYTES || fstatat(dir, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != s->dev)
        return 0;
    if (!top)
        s->path[length++] = '/';
    memcpy(s->path + length, d->name, name + 1);
    if (!S_ISDIR(st.st_mode))
        return add_file(s->into, s->path, &st);
    if (s->queue.len > NAMES_MAX)
        return E2BIG;
    buf_bytes(&s->queue, s->path, length + name + 1);
    return 0;
}

static int look_into(struct scan *s, size_t length)
{
    char raw[32768] __attribute__((aligned(8)));
    int dir = open_beneath(workspace_fd, s->path, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS), error = 0;
    long n;
    /* A directory that has vanished or cannot be entered counts as empty. */
    while (dir >= 0 && !error && (n = syscall(SYS_getdents64, dir, raw, sizeof raw)) > 0) {
        if (now_us() > s->until_us)
            error = ETIME;
        for (long at = 0; at < n && !error;) {
            const struct dirent64 *d = (struct dirent64 *)(void *)(raw + at);
            at += d->reclen;
            error = look_at(s, dir, length, d);
            s->path[length] = 0;
        }
    }
    if (dir >= 0)
        close(dir);
    return error;
}

static int by_path(const void *a, const void *b, void *snapshot) { return strcmp(path_of(snapshot, a), path_of(snapshot, b)); }

static int scan_workspace(struct scan *s)
{
    struct stat st;
    if (fstat(workspace_fd, &st) < 0)
        return errno;
    s->dev = st.st_dev;
    s->until_us = now_us() + SCAN_US;
    buf8(&s->queue, 0);
    int error = 0;
    while (!error && s->next < s->queue.len) {
        const char *path = (const char *)s->queue.p + s->next;
        size_t length = strlen(path);
        memcpy(s->path, path, length + 1);
        s->next += length + 1;
        error = look_into(s, length);
    }
    free(s->queue.p);
    if (!error && s->into->n)
        qsort_r(s->into->files, s->into->n, sizeof *s->into->files, by_path, s->into);
    return error;
}

/* ---- keeping --------------------------------------------------------------------------------- */

static size_t bytes_of(const struct snapshot *s) { return s->cap * sizeof *s->files + s->paths.cap; }

static void drop_snapshot(size_t i)
{
    free_snapshot(&snapshots[i]);
    memmove(snapshots + i, snapshots + i + 1, (--snapshots_n - i) * sizeof *snapshots);
}

static void keep_snapshot(const struct snapshot *s)
{
    size_t all = bytes_of(s);
    for (size_t i = 0; i < snapshots_n; i++)
        all += bytes_of(&snapshots[i]);
    while (snapshots_n && (snapshots_n == SNAPSHOTS_MAX || all > SNAPSHOTS_BYTES)) {
        all -= bytes_of(&snapshots[0]);
        drop_snapshot(0);
    }
    snapshots[snapshots_n++] = *s;
}

static size_t snapshot_with(uint32_t handle)
{
    size_t i = 0;
    while (i < snapshots_n && snapshots[i].handle != handle)
        i++;
    return i;
}

void snapshots_forget(void)
{
    while (snapshots_n)
        drop_snapshot(snapshots_n - 1);
}

int take_snapshot(uint32_t handle, struct buf *out)
{
    struct snapshot now = {.handle = handle};
    struct scan scan = {.into = &now};
    if (snapshot_with(handle) < snapshots_n)
        drop_snapshot(snapshot_with(handle));
    int error = scan_workspace(&scan);
    if (error) {
        free_snapshot(&now);
    } else {
        keep_snapshot(&now);
        buf32(out, (uint32_t)now.n);
        buf32(out, scan.repositories_n);
        buf_bytes(out, scan.repositories.p, scan.repositories.len);
    }
    free(scan.repositories.p);
    return error;
}

/* ---- comparing ------------------------------------------------------------------------------- */

enum change_kind { CREATED = 1, CHANGED = 2, REMOVED = 3 };

struct change {
    const char *path;
    uint64_t size;
    unsigned depth;
    uint8_t kind;
};

static unsigned depth_of(const char *path)
{
    unsigned depth = 0;
    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

/* Nearest to the top first: of thousands of files, those that users know by name. */
static int by_depth(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return strcmp(x->path, y->path);
}

static struct change change_of(uint8_t kind, const struct snapshot *s, const struct seen *file)
{
    const char *path = path_of(s, file);
    return (struct change){path, file->size, depth_of(path), kind};
}

/* Fills `changes`, which has room for all files of both. Returns their number. */
static size_t compare(const struct snapshot *before, const struct snapshot *after, struct change *changes)
{
    size_t n = 0, a = 0, b = 0;
    while (a < before->n && b < after->n) {
        const struct seen *old = &before->files[a], *new = &after->files[b];
        int order = strcmp(path_of(before, old), path_of(after, new));
        a += order <= 0;
        b += order >= 0;
        if (order < 0)
            changes[n++] = change_of(REMOVED, before, old);
        else if (order > 0)
            changes[n++] = change_of(CREATED, after, new);
        else if (old->ino != new->ino || old->size != new->size || old->changed_ns != new->changed_ns)
            changes[n++] = change_of(CHANGED, after, new);
    }
    while (a < before->n)
        changes[n++] = change_of(REMOVED, before, &before->files[a++]);
    while (b < after->n)
        changes[n++] = change_of(CREATED, after, &after->files[b++]);
    return n;
}

static void put_changes(struct buf *out, const struct change *changes, size_t n)
{
    buf32(out, (uint32_t)n);
    size_t count_at = out->len;
    buf32(out, 0);
    uint32_t count = 0;
    while (count < n) {
        const struct change *c = &changes[count];
        size_t length = strlen(c->path);
        if (out->len + 13 + length > ANSWER_BYTES)
            break;
        buf8(out, c->kind);
        buf64(out, c->size);
        buf32(out, (uint32_t)length);
        buf_bytes(out, c->path, length);
        count++;
    }
    put32(out->p + count_at, count);
}

int report_changes(uint32_t handle, struct buf *out)
{
    size_t i = snapshot_with(handle);
    if (i == snapshots_n)
        return ENOENT;
    struct snapshot *before = &snapshots[i], now = {0};
    struct scan scan = {.into = &now};
    int error = scan_workspace(&scan);
    free(scan.repositories.p);
    struct change *changes = error ? NULL : calloc(before->n + now.n + 1, sizeof *changes);
    if (changes) {
        size_t n = compare(before, &now, changes);
        qsort(changes, n, sizeof *changes, by_depth);
        put_changes(out, changes, n);
    } else if (!error) {
        error = ENOMEM;
    }
    free(changes);
    free_snapshot(&now);
    drop_snapshot(i);
    return error;
}
