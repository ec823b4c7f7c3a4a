/*
 * The whole copy of a long output, written to a file in the workspace by a thread, so that a slow
 * disk delays neither other commands nor the connection. A command whose copy is too far behind is
 * not read until the thread has caught up; its EXIT waits for the complete file.
 */
#include "commands.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../disk/disk.h"
#include "../files/files.h"

#define WAITING_MAX (1u << 20) /* queued bytes of one command for the disk */
#define CHUNK_MIN 16384

struct chunk {
    struct chunk *next;
    size_t n, cap;
    uint8_t p[];
};

struct spool_file {
    struct spool_file *next;     /* all files, for the loop */
    struct spool_file *next_due; /* those with work, for the thread */
    struct command *owner;       /* NULL after the command is forgotten; for the loop */
    char name[ID_BYTES * 2 + 5];
    int fd; /* the thread's */
    /* Under the lock: */
    struct chunk *first, *last;
    size_t waiting;
    uint64_t written;
    bool due, closing, done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct spool_file *files, *first_due, *last_due;
static int progress_fd = -1;

/* ---- the thread ------------------------------------------------------------------------------ */

/* Returns the bytes written: less than n where the disk is full or a file's limit is reached. */
static uint64_t write_whole(int fd, const uint8_t *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t w = write(fd, p + done, n - done);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            break;
        done += (size_t)w;
    }
    return done;
}

static struct spool_file *next_due_file(struct chunk **chunks, bool *closing)
{
    pthread_mutex_lock(&lock);
    while (!first_due)
        pthread_cond_wait(&filled, &lock);
    struct spool_file *f = first_due;
    first_due = f->next_due;
    f->due = false;
    *chunks = f->first;
    *closing = f->closing;
    f->first = f->last = NULL;
    pthread_mutex_unlock(&lock);
    return f;
}

static void *spool_thread(void *unused)
{
    (void)unused;
    for (;;) {
        struct chunk *c;
        bool closing;
        struct spool_file *f = next_due_file(&c, &closing);
        if (f->fd == -1 && c)
            f->fd = files_open_spool(f->name);
        uint64_t written = 0;
        size_t taken = 0;
        while (c) {
            struct chunk *next = c->next;
            uint64_t w = f->fd >= 0 ? write_whole(f->fd, c->p, c->n) : 0;
            written += w;
            taken += c->n;
            if (w < c->n && f->fd >= 0) {
                /* The file keeps what it has; the output continues. */
                close(f->fd);
                f->fd = -ENOSPC;
            }
            free(c);
            c = next;
        }
        if (closing && f->fd >= 0)
            close(f->fd);
        pthread_mutex_lock(&lock);
        f->waiting -= taken;
        f->written += written;
        f->done = closing;
        pthread_mutex_unlock(&lock);
        uint64_t one = 1;
        (void)!write(progress_fd, &one, sizeof one);
    }
    return NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void progress_ready(struct source *src, uint32_t events);

static bool begin_thread(void)
{
    static struct source src = {.ready = progress_ready};
    pthread_attr_t attr;
    pthread_t thread;
    progress_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (progress_fd < 0)
        return false;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256u << 10);
    bool began = poll_add(progress_fd, EPOLLIN, &src) && pthread_create(&thread, &attr, spool_thread, NULL) == 0;
    pthread_attr_destroy(&attr);
    if (!began) {
        close(progress_fd);
        progress_fd = -1;
    }
    return began;
}

/* Call with the lock held. */
static void enqueue(struct spool_file *f)
{
    if (f->due)
        return;
    f->due = true;
    f->next_due = NULL;
    if (first_due)
        last_due->next_due = f;
    else
        first_due = f;
    last_due = f;
    pthread_cond_signal(&filled);
}

static void push(struct spool_file *f, const uint8_t *p, size_t n)
{
    pthread_mutex_lock(&lock);
    struct chunk *last = f->last;
    if (!last || last->cap - last->n < n) {
        size_t cap = n > CHUNK_MIN ? n : CHUNK_MIN;
        struct chunk *made = malloc(sizeof *made + cap);
        if (!made)
            die("out of memory");
        *made = (struct chunk){NULL, 0, cap};
        if (last)
            last->next = made;
        else
            f->first = made;
        last = f->last = made;
    }
    memcpy(last->p + last->n, p, n);
    last->n += n;
    f->waiting += n;
    enqueue(f);
    pthread_mutex_unlock(&lock);
}

static struct spool_file *begin_file(struct command *c)
{
    if (progress_fd < 0 && !begin_thread())
        return NULL;
    struct spool_file *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    for (int i = 0; i < ID_BYTES; i++)
        snprintf(f->name + 2 * i, 3, "%02x", c->id[i]);
    strcpy(f->name + ID_BYTES * 2, ".txt");
    f->fd = -1;
    f->owner = c;
    f->next = files;
    files = f;
    return f;
}

static void close_file(struct spool_file *f)
{
    pthread_mutex_lock(&lock);
    if (!f->closing) {
        f->closing = true;
        enqueue(f);
    }
    pthread_mutex_unlock(&lock);
}

void spool_add(struct command *c, const uint8_t *p, size_t n)
{
    struct spool *s = &c->spool;
    if (!s->wanted)
        return;
    if (disk_no_growth()) {
        /* The file keeps what it has; the output continues. */
        s->wanted = false;
        return;
    }
    s->seen += n;
    if (n > s->max - s->accepted)
        n = (size_t)(s->max - s->accepted);
    s->accepted += n;
    if (!s->file && s->seen <= s->after) {
        buf_bytes(&s->held, p, n);
        return;
    }
    if (!s->file) {
        s->file = begin_file(c);
        s->wanted = s->file != NULL;
        if (s->file && s->held.len)
            push(s->file, s->held.p, s->held.len);
        free(s->held.p);
        s->held = (struct buf){0};
    }
    if (s->file && n)
        push(s->file, p, n);
}

bool spool_is_full(const struct command *c)
{
    if (!c->spool.file)
        return false;
    pthread_mutex_lock(&lock);
    bool behind = c->spool.file->waiting >= WAITING_MAX;
    pthread_mutex_unlock(&lock);
    return behind;
}

static void drop_file(struct spool_file *f)
{
    struct spool_file **at = &files;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    free(f);
}

bool spool_finished(struct command *c)
{
    struct spool *s = &c->spool;
    free(s->held.p);
    s->held = (struct buf){0};
    if (!s->file)
        return true;
    close_file(s->file);
    pthread_mutex_lock(&lock);
    bool done = s->file->done;
    s->written = s->file->written;
    pthread_mutex_unlock(&lock);
    if (!done)
        return false;
    drop_file(s->file);
    s->file = NULL;
    s->wanted = false;
    return true;
}

void spool_forget(struct command *c)
{
    free(c->spool.held.p);
    c->spool.held = (struct buf){0};
    if (!c->spool.file)
        return;
    c->spool.file->owner = NULL;
    close_file(c->spool.file);
    c->spool.file = NULL;
}

/* The thread has made progress. */
static void progress_ready(struct source *src, uint32_t events)
{
    uint64_t count;
    (void)src, (void)events;
    (void)!read(progress_fd, &count, sizeof count);
    for (struct spool_file *f = files, *next; f; f = next) {
        next = f->next;
        pthread_mutex_lock(&lock);
        bool caught_up = f->waiting <= WAITING_MAX / 2, done = f->done;
        pthread_mutex_unlock(&lock);
        struct command *c = f->owner;
        if (!c && done)
            drop_file(f);
        for (int i = 0; c && caught_up && i < 2; i++)
            stream_resume(c, &c->out[i]);
        /* The last statement about f: it may end here. */
        if (c)
            command_finish_if_done(c);
    }
}
