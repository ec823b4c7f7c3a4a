/*
 * The disk budget. A thread counts the workspace (watch.c); the loop acts on the result. Above the
 * budget, while the controller forbids growth, or while the shared file system is below its floor,
 * writers are killed, commands start with a file size limit of 0 and writing file requests are
 * refused, so that a user can still read and delete.
 */
#include "disk.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct disk disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .last_request = &disk.requests};

/* ---- for the loop and the file thread -------------------------------------------------------- */

void disk_get_state(struct disk_state *out)
{
    pthread_mutex_lock(&disk.lock);
    *out = disk.state;
    pthread_mutex_unlock(&disk.lock);
}

static void request_count(void)
{
    disk.count_requested = true;
    pthread_cond_signal(&disk.wake);
}

void disk_running(size_t commands_running)
{
    atomic_store(&disk.running_count, (unsigned)commands_running);
    atomic_store(&disk.running, commands_running > 0);
    if (commands_running && atomic_load(&disk.asleep)) {
        pthread_mutex_lock(&disk.lock);
        pthread_cond_signal(&disk.wake);
        pthread_mutex_unlock(&disk.lock);
    }
}

bool disk_no_growth(void) { return atomic_load(&disk.no_growth) || disk_low(); }

bool disk_full(void) { return atomic_load(&disk.full) || disk_own_full(); }

bool disk_count_pending(uint64_t ended_us)
{
    if (!(atomic_load(&disk.no_growth) & DISK_OVER) || now_us() - ended_us > DISK_COUNT_TIMEOUT_US)
        return false;
    pthread_mutex_lock(&disk.lock);
    bool waiting = disk.state.flags & DISK_OVER && disk.state.counted_us < ended_us;
    if (waiting)
        request_count();
    pthread_mutex_unlock(&disk.lock);
    return waiting;
}

int disk_refusal(void) { return disk_no_growth() ? EDQUOT : 0; }

void disk_file_changed(void)
{
    uint64_t now = now_us();
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += DISK_COUNT_TIMEOUT_US / 1000000;
    atomic_store(&disk.touched_us, now);
    pthread_mutex_lock(&disk.lock);
    if (disk.state.flags & DISK_OVER)
        request_count();
    else if (atomic_load(&disk.asleep))
        pthread_cond_signal(&disk.wake);
    int error = 0;
    while (!error && disk.state.flags & DISK_OVER && disk.state.counted_us < now)
        error = pthread_cond_timedwait(&disk.counted, &disk.lock, &until);
    pthread_mutex_unlock(&disk.lock);
}

static void send_state(uint32_t channel)
{
    struct disk_state s;
    struct buf b = {0};
    disk_get_state(&s);
    buf8(&b, s.flags | disk_low());
    buf8(&b, (uint8_t)s.source);
    buf16(&b, 0);
    buf64(&b, s.used.bytes);
    buf64(&b, s.used.entries);
    buf64(&b, s.most.bytes);
    buf64(&b, s.most.entries);
    frame_out(T_DISK_STATE, 0, channel, b.p, b.len);
    free(b.p);
}

void disk_budget(const struct frame *f)
{
    struct reader r = frame_reader(f);
    struct disk_count most = {.bytes = rd64(&r)};
    most.entries = rd64(&r);
    uint64_t host_bytes = rd64(&r), host_files = rd64(&r);
    pthread_mutex_lock(&disk.lock);
    if (!r.bad) {
        bool differs = most.bytes != disk.state.most.bytes || most.entries != disk.state.most.entries;
        uint8_t frozen = f->flags & F_FREEZE ? DISK_FROZEN : 0;
        disk.state.most = most;
        /*
         * Set before the floor, or a small workspace with its own limit would look like a full
         * host.
         */
        disk_has_own_limit(most.bytes);
        disk_floor(host_bytes, host_files);
        if (frozen != (disk.state.flags & DISK_FROZEN)) {
            disk.state.flags = (uint8_t)((disk.state.flags & DISK_OVER) | frozen);
            disk.base_known = false;
            differs = true;
        }
        atomic_store(&disk.no_growth, disk.state.flags);
        if (differs)
            request_count();
    }
    pthread_mutex_unlock(&disk.lock);
    send_state(f->channel);
}

void disk_stat(const struct frame *f)
{
    struct disk_request *r = malloc(sizeof *r);
    if (!r)
        die("out of memory");
    pthread_mutex_lock(&disk.lock);
    *r = (struct disk_request){NULL, disk.session, f->channel};
    *disk.last_request = r;
    disk.last_request = &r->next;
    pthread_cond_signal(&disk.wake);
    pthread_mutex_unlock(&disk.lock);
}

void disk_forget(void)
{
    pthread_mutex_lock(&disk.lock);
    disk.session++;
    pthread_mutex_unlock(&disk.lock);
}

bool disk_collect(struct disk_suspects *found, bool *only_these)
{
    uint64_t ignored;
    (void)!read(disk.event_fd, &ignored, sizeof ignored);
    pthread_mutex_lock(&disk.lock);
    struct buf done = disk.answers;
    disk.answers = (struct buf){0};
    bool notify = disk.changed, end = disk.writers_found;
    disk.changed = disk.writers_found = false;
    *found = disk.writers;
    *only_these = disk.only_these;
    uint64_t current = disk.session;
    pthread_mutex_unlock(&disk.lock);
    if (notify && welcomed)
        send_state(0);
    struct reader r = {done.p, done.len, false};
    while (r.left) {
        uint64_t whose = rd64(&r);
        uint32_t channel = rd32(&r), length = rd32(&r);
        const uint8_t *p = rdn(&r, length);
        if (whose == current && p)
            frame_out(T_STAT_RESULT, 0, channel, p, length);
    }
    free(done.p);
    return end;
}

int disk_eventfd(void) { return disk.event_fd; }

void disk_init(void)
{
    disk_room_init();
    disk.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&disk.wake, &monotonic);
    pthread_cond_init(&disk.counted, &monotonic);
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 << 10);
    if (disk.event_fd < 0 || pthread_create(&thread, &attr, disk_watch, NULL) != 0)
        die("cannot start the disk thread");
    pthread_attr_destroy(&attr);
}
