/*
 * FILE_WRITE: bytes are written to a temporary file in the staging directory, which is swept at
 * every start, and renamed when it is complete.
 */
#include "files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../disk/disk.h"

#define WRITES_MAX 32
/* Maximum of unsynced bytes: the fsync of a large file would hold up every request. */
#define UNSYNCED_MAX (32 << 20)

struct write_state {
    bool used;
    uint64_t session;
    uint32_t handle;
    int fd;
    uint64_t written;
    uint64_t syncing; /* written back, or in progress */
    uint64_t resolve; /* RESOLVE_NO_SYMLINKS, or 0 */
    bool is_new;
    char name[40];
    char path[PATH_BYTES + 1];
};
static struct write_state writes[WRITES_MAX];

static void end_write(struct write_state *w)
{
    int dir = w->name[0] ? staging_dir(false) : -1;
    if (dir >= 0) {
        unlinkat(dir, w->name, 0);
        close(dir);
        staging_remove_if_empty();
    }
    if (w->fd >= 0)
        close(w->fd);
    w->used = false;
}

/* Starts writing back the last bytes, and waits for those started before. */
static void sync_part(struct write_state *w)
{
    if (w->written - w->syncing < UNSYNCED_MAX)
        return;
    off_t from = (off_t)w->syncing, length = (off_t)(w->written - w->syncing);
    sync_file_range(w->fd, from, length, SYNC_FILE_RANGE_WRITE);
    if (from >= length)
        sync_file_range(w->fd, from - length, length, SYNC_FILE_RANGE_WAIT_BEFORE);
    w->syncing = w->written;
}

static int begin_write(struct write_state *w, const char *path, uint64_t resolve, bool is_new)
{
    static uint64_t counter;
    struct stat st;
    w->fd = -1;
    w->written = w->syncing = 0;
    w->resolve = resolve;
    w->is_new = is_new;
    w->name[0] = 0;
    strcpy(w->path, path);
    /*
     * Refuses impossible targets before any byte is taken: a directory, a device, a link to
     * outside.
     */
    int old = open_beneath(workspace_fd, path, O_PATH, 0, resolve);
    if (old < 0 && errno != ENOENT && errno != ENOTDIR)
        return errno;
    bool exists = old >= 0 && fstat(old, &st) == 0;
    if (old >= 0)
        close(old);
    if (exists && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? EISDIR : ENXIO;
    if (exists && is_new)
        return EEXIST;
    snprintf(w->name, sizeof w->name, STAGING_PREFIX "%llu", (unsigned long long)++counter);
    w->fd = create_staged(w->name);
    if (w->fd < 0)
        return errno;
    if (exists && fchmod(w->fd, st.st_mode & 0777) < 0)
        return errno;
    return 0;
}

/* A link at the end is followed, where links are: its target is replaced, as by an editor. */
static int resolve_link(char *path, uint64_t resolve)
{
    for (int hops = 0; hops < 16; hops++) {
        char target[PATH_BYTES + 1], joined[PATH_BYTES * 2 + 2];
        const char *name;
        int dir = open_parent(path, &name, resolve);
        if (dir < 0)
            return errno == ENOENT ? 0 : errno; /* no parent yet, hence no link */
        ssize_t n = readlinkat(dir, name, target, PATH_BYTES);
        int error = errno;
        close(dir);
        if (n < 0)
            return error == EINVAL || error == ENOENT ? 0 : error;
        if (resolve)
            return ELOOP;
        target[n] = 0;
        if (target[0] == '/')
            return EXDEV;
        int len = snprintf(joined, sizeof joined, "%.*s%s", (int)(name - path), path, target);
        if (len > PATH_BYTES)
            return ENAMETOOLONG;
        strcpy(path, joined);
    }
    return ELOOP;
}

static int commit_write(struct write_state *w)
{
    if (fsync(w->fd) < 0)
        return errno;
    int error = resolve_link(w->path, w->resolve);
    if (error)
        return error;
    const char *name;
    char *slash = strrchr(w->path, '/');
    int to = open_parent(w->path, &name, w->resolve);
    if (to < 0 && errno == ENOENT && slash) {
        *slash = 0;
        int made = make_directories(w->path, w->resolve);
        *slash = '/';
        if (made < 0)
            return errno;
        to = open_parent(w->path, &name, w->resolve);
    }
    if (to < 0)
        return errno;
    int from = staging_dir(false);
    error = from < 0 ? errno : rename_to(from, w->name, to, name, w->is_new);
    if (from >= 0)
        close(from);
    close(to);
    if (!error)
        w->name[0] = 0;
    staging_remove_if_empty();
    return error;
}

int write_piece(const struct job *j, struct reader *r)
{
    uint32_t handle = rd32(r);
    uint64_t offset = rd64(r);
    uint32_t path_len = rd32(r);
    const uint8_t *path = rdn(r, path_len);
    if (r->bad || path_len > PATH_BYTES || memchr(path, 0, path_len))
        return EINVAL;
    struct write_state *w = NULL;
    for (int i = 0; i < WRITES_MAX; i++)
        if (writes[i].used && writes[i].session == j->session && writes[i].handle == handle)
            w = &writes[i];
    int error = j->flags & F_ABORT ? 0 : disk_refusal();
    if (!w && error)
        return error;
    if (j->flags & F_BEGIN) {
        if (w)
            return EINVAL;
        for (int i = 0; i < WRITES_MAX && !w; i++)
            if (!writes[i].used)
                w = &writes[i];
        if (!w)
            return EBUSY;
        char text[PATH_BYTES + 1];
        memcpy(text, path, path_len);
        text[path_len] = 0;
        w->used = true;
        w->session = j->session;
        w->handle = handle;
        error = begin_write(w, text, resolve_flags(j), j->flags & F_NEW);
    }
    if (!w)
        return EBADF;
    if (!error && j->flags & F_ABORT)
        error = ECANCELED;
    if (!error && offset != w->written)
        error = EINVAL;
    while (!error && r->left) {
        ssize_t n = write(w->fd, r->p, r->left);
        if (n < 0 && errno != EINTR)
            error = errno;
        if (n > 0) {
            rdn(r, (size_t)n);
            w->written += (uint64_t)n;
        }
    }
    sync_part(w);
    if (!error && j->flags & F_COMMIT)
        error = commit_write(w);
    if (error || j->flags & F_COMMIT)
        end_write(w);
    return error == ECANCELED && j->flags & F_ABORT ? 0 : error;
}

void writes_forget(uint64_t session)
{
    for (int i = 0; i < WRITES_MAX; i++)
        if (writes[i].used && writes[i].session != session)
            end_write(&writes[i]);
}
