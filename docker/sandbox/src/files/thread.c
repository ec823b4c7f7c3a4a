/*
 * The file thread: it answers file requests in order, empties the temporary directories at a RESET
 * and writes the sessions, so that an fsync on a slow disk never delays a command.
 */
#include "files.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../disk/disk.h"

#define QUEUED_MAX 512

/* ---- answers --------------------------------------------------------------------------------- */

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
static uint64_t session; /* counts controllers; an answer to an earlier one is discarded */
static int ready_fd;

/* ---- the thread ------------------------------------------------------------------------------ */

/*
 * The second column of each of these files is the object's number; the first line names the
 * columns.
 */
static void remove_each(const char *path, void (*remove_one)(int id))
{
    FILE *f = fopen(path, "re");
    char line[512];
    int id;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, " %*d %d", &id) == 1)
            remove_one(id);
    if (f)
        fclose(f);
}

static void remove_shm(int id) { shmctl(id, IPC_RMID, NULL); }
static void remove_msg(int id) { msgctl(id, IPC_RMID, NULL); }
static void remove_sem(int id) { semctl(id, 0, IPC_RMID); }

/*
 * SysV objects outlive their processes. In a container the IPC namespace is ours alone, so all of
 * them are removed at a RESET.
 */
static void remove_ipc(void)
{
    remove_each("/proc/sysvipc/shm", remove_shm);
    remove_each("/proc/sysvipc/msg", remove_msg);
    remove_each("/proc/sysvipc/sem", remove_sem);
}

static void empty_tmp(void)
{
    for (size_t i = 0; i < sizeof tmp_dirs / sizeof *tmp_dirs && tmp_dirs[i]; i++) {
        int fd = open(tmp_dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            empty_directory(fd);
            close(fd);
        }
    }
    if (is_init)
        remove_ipc();
}

static void *file_thread(void *unused)
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
            snapshots_forget();
            watches_forget();
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
        } else if (j->run) {
            j->run();
        } else {
            buf32(&a->body, 0);
            bool grows = j->type == T_FILE_MKDIR, changes = grows || j->type == T_FILE_WRITE || j->type == T_FILE_REMOVE;
            int error = grows ? disk_refusal() : 0;
            if (!error)
                error = file_request(j, &a->body, &a->flags);
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

static void submit(const struct frame *f, void (*run)(void))
{
    struct job *j = malloc(sizeof *j + f->n);
    if (!j)
        die("out of memory");
    *j = (struct job){NULL, session, f->channel, f->flags, f->type, run, f->n};
    if (f->n)
        memcpy(j->payload, f->p, f->n);
    pthread_mutex_lock(&lock);
    *last_job = j;
    last_job = &j->next;
    queued++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

void files_submit(const struct frame *f)
{
    pthread_mutex_lock(&lock);
    bool full = queued >= QUEUED_MAX;
    pthread_mutex_unlock(&lock);
    if (full) {
        uint8_t busy[4];
        put32(busy, EBUSY);
        frame_out(T_FILE_RESULT, 0, f->channel, busy, sizeof busy);
    } else {
        submit(f, NULL);
    }
}

void files_run(void (*run)(void)) { submit(&(struct frame){0}, run); }

void files_empty_tmp(uint32_t channel) { submit(&(struct frame){.type = T_RESET, .channel = channel}, NULL); }

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

/* Removes leftovers of an sbxd that died in the middle of a write. */
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
    staging_remove_if_empty();
}

void files_init(void)
{
    ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sweep_staging();
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 20);
    if (ready_fd < 0 || pthread_create(&thread, &attr, file_thread, NULL) != 0)
        die("cannot start the file thread");
    pthread_attr_destroy(&attr);
}
