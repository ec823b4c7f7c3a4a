/*
 * Watches directories that the controller displays, and notifies it of changes by any process.
 * inotify counts per user, and few directories are displayed, so their number is bounded and
 * subdirectories are not watched. Many changes are one notice.
 */
#include "files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WATCHES_MAX 128
/* The first notice is sent soon, the next ones at a reader's pace. */
#define SOON_MS 80
#define AGAIN_MS 1000
/* Queued answers for a controller that does not read. */
#define QUEUED_BYTES (1u << 20)

#define CHANGES (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

struct watch {
    int wd;      /* -1: it cannot be watched */
    bool changed;
};

static int inotify_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. The index of a directory is its number for the controller. */
static struct watch watches[WATCHES_MAX];
static size_t watches_n;
static uint32_t set; /* which of the controller's sets these are */
static bool lost;    /* the kernel has dropped events: everything may have changed */
/* For the loop only, in milliseconds; 0: nothing is due. */
static uint64_t due_ms, notified_ms;

int watches_fd(void) { return inotify_fd; }

void watches_init(void) { inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC); }

/* ---- which ones ------------------------------------------------------------------------------ */

/* By its descriptor, because the name may lead elsewhere a moment later. */
static int add_watch(const char *path)
{
    char name[64];
    int dir = open_beneath(workspace_fd, path, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
    if (dir < 0)
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", dir);
    int wd = inotify_add_watch(inotify_fd, name, CHANGES | IN_ONLYDIR);
    close(dir);
    return wd;
}

static struct watch *watch_of(struct watch *among, size_t n, int wd)
{
    for (size_t i = 0; i < n; i++)
        if (among[i].wd == wd)
            return &among[i];
    return NULL;
}

/* Replaces the former set. Changes of a directory in both sets are kept. */
static void replace(const struct watch *next, size_t n, uint32_t which)
{
    struct watch before[WATCHES_MAX];
    pthread_mutex_lock(&lock);
    size_t before_n = watches_n;
    memcpy(before, watches, before_n * sizeof *before);
    if (n)
        memcpy(watches, next, n * sizeof *next);
    watches_n = n;
    set = which;
    for (size_t i = 0; i < n; i++) {
        const struct watch *old = watches[i].wd < 0 ? NULL : watch_of(before, before_n, watches[i].wd);
        watches[i].changed = old && old->changed;
    }
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < before_n; i++)
        if (before[i].wd >= 0 && !watch_of((struct watch *)next, n, before[i].wd))
            inotify_rm_watch(inotify_fd, before[i].wd);
}

int watch_directories(uint32_t which, struct reader *r, struct buf *out)
{
    struct watch next[WATCHES_MAX];
    size_t n = 0;
    uint32_t watched = 0;
    if (inotify_fd < 0)
        return ENOSYS;
    while (r->left && n < WATCHES_MAX) {
        char path[PATH_BYTES + 1];
        int error = take_path(r, path);
        if (error)
            return error;
        next[n].wd = add_watch(path);
        watched += next[n++].wd >= 0;
    }
    replace(next, n, which);
    buf32(out, watched);
    return 0;
}

void watches_forget(void)
{
    if (inotify_fd >= 0)
        replace(NULL, 0, 0);
}

/* ---- what happens in them -------------------------------------------------------------------- */

static void note(const struct inotify_event *e)
{
    if (e->mask & IN_Q_OVERFLOW) {
        lost = true;
        return;
    }
    /* The same directory may have been named twice. */
    for (size_t i = 0; i < watches_n; i++)
        if (watches[i].wd == e->wd) {
            watches[i].changed = true;
            /* The kernel has ended the watch, and may reuse its number. */
            if (e->mask & IN_IGNORED)
                watches[i].wd = -1;
        }
}

void watches_ready(void)
{
    char events[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(inotify_fd, events, sizeof events);
    pthread_mutex_lock(&lock);
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const struct inotify_event *)(const void *)(events + at);
        at += (ssize_t)(sizeof *e + e->len);
        note(e);
    }
    pthread_mutex_unlock(&lock);
}

static void notify(void)
{
    struct buf b = {0};
    pthread_mutex_lock(&lock);
    uint16_t flags = lost ? F_ALL : 0;
    buf32(&b, set);
    for (size_t i = 0; i < watches_n; i++)
        if (watches[i].changed) {
            buf16(&b, (uint16_t)i);
            watches[i].changed = false;
        }
    lost = false;
    pthread_mutex_unlock(&lock);
    frame_out(T_FILE_CHANGED, flags, 0, b.p, b.len);
    free(b.p);
}

static bool is_changed(void)
{
    pthread_mutex_lock(&lock);
    bool changed = lost && watches_n;
    for (size_t i = 0; i < watches_n; i++)
        changed = changed || watches[i].changed;
    pthread_mutex_unlock(&lock);
    return changed;
}

int watches_timers(uint64_t now_ms)
{
    if (!due_ms) {
        if (!is_changed())
            return -1;
        uint64_t next = notified_ms + AGAIN_MS, soon = now_ms + SOON_MS;
        due_ms = notified_ms && next > soon ? next : soon;
    }
    if (now_ms < due_ms)
        return (int)(due_ms - now_ms);
    if (wire_queued() > QUEUED_BYTES)
        return SOON_MS;
    due_ms = 0;
    notified_ms = now_ms;
    if (is_changed())
        notify();
    return -1;
}
