/*
 * File requests. One thread answers them in order, so that an fsync on a slow disk never delays a command.
 */
#include "files.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QUEUED_MAX 512
#define READ_MAX (MAX_PAYLOAD - 64)

/* ---- answers ---------------------------------------------------------------------------------------------- */

struct answer {
    struct answer *next;
    uint64_t session;
    uint32_t channel;
    uint16_t flags;
    uint8_t type;
    struct buf body;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct job *first_job, **last_job = &first_job;
static struct answer *first_answer, **last_answer = &first_answer;
static size_t queued;
static uint64_t session; /* counts controllers; an answer to an earlier one is thrown away */
static int ready_fd;

static void put_stat(struct buf *b, const struct stat *st)
{
    buf8(b, S_ISREG(st->st_mode) ? 1 : S_ISDIR(st->st_mode) ? 2 : S_ISLNK(st->st_mode) ? 3 : 4);
    buf32(b, st->st_mode & 07777);
    buf64(b, (uint64_t)st->st_size);
    buf64(b, (uint64_t)st->st_mtim.tv_sec * 1000 + (uint64_t)st->st_mtim.tv_nsec / 1000000);
}

/* ---- one request each ------------------------------------------------------------------------------------- */
/* They return 0 or an errno; what they add to `out` follows the errno in the answer. */

static int do_stat(const char *path, struct buf *out)
{
    struct stat st;
    int fd = open_beneath(workspace_fd, path, O_PATH | O_NOFOLLOW, 0, 0);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &st) < 0 ? errno : 0;
    close(fd);
    if (!error)
        put_stat(out, &st);
    return error;
}

/* One page: entries until about 48 KiB, then where the next page begins. */
static int do_list(const char *path, uint64_t from, struct buf *out, uint16_t *flags)
{
    char raw[32768] __attribute__((aligned(8)));
    int fd = open_beneath(workspace_fd, path, O_RDONLY | O_DIRECTORY, 0, 0);
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

static int open_regular(const char *path, struct stat *st)
{
    int fd = open_beneath(workspace_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, 0);
    if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))) {
        close(fd);
        fd = -1;
        errno = S_ISDIR(st->st_mode) ? EISDIR : ENXIO;
    }
    return fd;
}

static int do_read(const char *path, uint64_t offset, uint32_t length, struct buf *out)
{
    struct stat st;
    int fd = open_regular(path, &st);
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

static int do_mkdir(char *path) { return make_directories(path) < 0 ? errno : 0; }

static int do_rename(char *from, char *to)
{
    const char *from_name, *to_name;
    int a = open_parent(from, &from_name);
    if (a < 0)
        return errno;
    int b = open_parent(to, &to_name), error = errno;
    if (b >= 0) {
        error = renameat(a, from_name, b, to_name) < 0 ? errno : 0;
        close(b);
    }
    close(a);
    return error;
}

/* ---- the thread ------------------------------------------------------------------------------------------- */

static int take_path(struct reader *r, char path[PATH_BYTES + 1])
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

static int answer_job(const struct job *j, struct buf *out, uint16_t *flags)
{
    struct reader r = {j->payload, j->n, false};
    char path[PATH_BYTES + 1], other[PATH_BYTES + 1];
    if (j->type == T_FILE_WRITE)
        return write_piece(j, &r);
    int error = take_path(&r, path);
    if (error)
        return error;
    uint64_t offset = j->type == T_FILE_LIST || j->type == T_FILE_READ ? rd64(&r) : 0;
    uint32_t length = j->type == T_FILE_READ ? rd32(&r) : 0;
    if (j->type == T_FILE_RENAME)
        error = take_path(&r, other);
    if (error || r.bad)
        return error ? error : EINVAL;
    switch (j->type) {
    case T_FILE_STAT:
        return do_stat(path, out);
    case T_FILE_LIST:
        return do_list(path, offset, out, flags);
    case T_FILE_READ:
        return do_read(path, offset, length, out);
    case T_FILE_MKDIR:
        return do_mkdir(path);
    case T_FILE_REMOVE:
        return remove_path(path, j->flags & F_RECURSIVE);
    default:
        return do_rename(path, other);
    }
}

static void empty_tmp(void)
{
    for (size_t i = 0; i < sizeof tmp_dirs / sizeof *tmp_dirs && tmp_dirs[i]; i++) {
        unsigned moved = 0;
        int fd = open(tmp_dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            empty_directory(fd, fd, 0, &moved);
            close(fd);
        }
    }
    if (is_init)
        ipc_remove();
}

static void *serve(void *unused)
{
    (void)unused;
    uint64_t seen = 0;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!first_job)
            pthread_cond_wait(&filled, &lock);
        struct job *j = first_job;
        first_job = j->next;
        if (!first_job)
            last_job = &first_job;
        pthread_mutex_unlock(&lock);

        if (j->session != seen) {
            writes_forget(j->session);
            seen = j->session;
        }
        struct answer *a = calloc(1, sizeof *a);
        if (!a)
            die("out of memory");
        a->session = j->session;
        a->channel = j->channel;
        a->type = j->type == T_RESET ? T_RESET_DONE : T_FILE_RESULT;
        if (j->type == T_RESET) {
            empty_tmp();
        } else {
            buf32(&a->body, 0);
            bool grows = j->type == T_FILE_MKDIR, changes = grows || j->type == T_FILE_WRITE || j->type == T_FILE_REMOVE;
            int error = grows ? disk_refusal() : 0;
            if (!error)
                error = answer_job(j, &a->body, &a->flags);
            if (changes)
                disk_file_changed();
            if (error) {
                a->body.len = 4;
                a->flags = 0;
                put32(a->body.p, (uint32_t)error);
            }
        }
        free(j);

        pthread_mutex_lock(&lock);
        *last_answer = a;
        last_answer = &a->next;
        queued--;
        pthread_mutex_unlock(&lock);
        uint64_t one = 1;
        (void)!write(ready_fd, &one, sizeof one);
    }
}

static void submit(uint8_t type, uint16_t flags, uint32_t channel, const uint8_t *p, size_t n)
{
    struct job *j = malloc(sizeof *j + n);
    if (!j)
        die("out of memory");
    *j = (struct job){NULL, session, channel, flags, type, n};
    if (n)
        memcpy(j->payload, p, n);
    pthread_mutex_lock(&lock);
    *last_job = j;
    last_job = &j->next;
    queued++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

void files_submit(uint8_t type, uint16_t flags, uint32_t channel, const uint8_t *p, size_t n)
{
    pthread_mutex_lock(&lock);
    bool full = queued >= QUEUED_MAX;
    pthread_mutex_unlock(&lock);
    if (full) {
        uint8_t busy[4];
        put32(busy, EBUSY);
        frame_out(T_FILE_RESULT, 0, channel, busy, sizeof busy);
    } else {
        submit(type, flags, channel, p, n);
    }
}

void files_clean_tmp(uint32_t channel) { submit(T_RESET, 0, channel, NULL, 0); }

void files_collect(void)
{
    uint64_t count;
    (void)!read(ready_fd, &count, sizeof count);
    pthread_mutex_lock(&lock);
    struct answer *a = first_answer;
    first_answer = NULL;
    last_answer = &first_answer;
    pthread_mutex_unlock(&lock);
    while (a) {
        struct answer *next = a->next;
        if (a->session == session && a->channel)
            frame_out(a->type, a->flags, a->channel, a->body.p, a->body.len);
        free(a->body.p);
        free(a);
        a = next;
    }
}

void files_forget(void) { session++; }

int files_eventfd(void) { return ready_fd; }

/* What a supervisor that died in the middle of a write has left behind. */
static void sweep_staging(void)
{
    char raw[4096] __attribute__((aligned(8)));
    int dir = staging_dir(false);
    long n;
    while (dir >= 0 && (n = syscall(SYS_getdents64, dir, raw, sizeof raw)) > 0)
        for (long at = 0; at < n;) {
            struct dirent64 *d = (struct dirent64 *)(void *)(raw + at);
            at += d->reclen;
            if (strncmp(d->name, STAGING_PREFIX, strlen(STAGING_PREFIX)) == 0)
                unlinkat(dir, d->name, 0);
        }
    if (dir >= 0)
        close(dir);
}

void files_init(void)
{
    ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sweep_staging();
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 20);
    if (ready_fd < 0 || pthread_create(&thread, &attr, serve, NULL) != 0)
        die("cannot start the file thread");
    pthread_attr_destroy(&attr);
}
