/*
 * The thread that watches the workspace: it counts usage while commands run, else it sleeps. A
 * workspace with its own file system or project quota is counted by statfs. Otherwise every file is
 * visited, as often as the growth requires: the free space of the file system, one cheap call,
 * bounds the bytes written since the last count.
 */
#include "disk.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TICK_MIN_US 2000
#define TICK_FIRST_US 20000
#define TICK_MAX_US 250000
#define PERIOD_US 5000000      /* maximum interval of counts while commands run … */
#define PERIOD_COST 200        /* … using at most 1/200 of a CPU */
#define GROWTH_COST 19         /* 1/20 of a CPU while something is written */
#define URGENT_COST 2          /* a third, when the budget may be used up */
#define WRITERS_US 1000000
#define TOUCHED_US 1000000
#define SLOW_US 100000

static void notify(void)
{
    uint64_t one = 1;
    (void)!write(disk.event_fd, &one, sizeof one);
}

/* ---- STAT ------------------------------------------------------------------------------------ */

static uint64_t counting_since, notified_us;

static void answer_requests(void)
{
    pthread_mutex_lock(&disk.lock);
    struct disk_request *r = disk.requests;
    disk.requests = NULL;
    disk.last_request = &disk.requests;
    pthread_mutex_unlock(&disk.lock);
    while (r) {
        struct disk_request *next = r->next;
        struct buf b = {0};
        stat_describe(&b, atomic_load(&disk.running_count));
        pthread_mutex_lock(&disk.lock);
        buf64(&disk.answers, r->session);
        buf32(&disk.answers, r->channel);
        buf32(&disk.answers, (uint32_t)b.len);
        buf_bytes(&disk.answers, b.p, b.len);
        pthread_mutex_unlock(&disk.lock);
        free(b.p);
        free(r);
        r = next;
        notify();
    }
}

/*
 * A count can take seconds: until it ends, STAT is answered with the last one, and the loop is
 * woken to check its timeouts.
 */
static void on_counting(void)
{
    uint64_t now = now_us();
    if (now - counting_since < SLOW_US)
        return;
    answer_requests();
    if (now - notified_us >= SLOW_US) {
        notified_us = now;
        notify();
    }
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Facts of the last count. For the watcher only. */
static struct {
    uint64_t at_us, cost_us, free, files_free, writers_us;
    bool known;
} last;

static void find_hidden_holders(enum disk_hidden hidden)
{
    struct disk_suspects holders = {.writers_n = 0};
    holders.writers_n = disk_hidden_holders(holders.writers, DISK_WRITERS_MAX, hidden == HIDDEN_MUCH && disk_any_active(), on_counting);
    pthread_mutex_lock(&disk.lock);
    disk_blame_hidden(&holders);
    pthread_mutex_unlock(&disk.lock);
    notify();
}

static void count(void)
{
    struct disk_count used = {0};
    struct disk_room room = {0};
    enum disk_source source = DISK_WALK;
    pthread_mutex_lock(&disk.lock);
    struct disk_count most = disk.state.most;
    bool host_short = disk_was_low() || disk.state.flags & DISK_FROZEN;
    bool near = disk.state.flags || host_short || (most.bytes && disk.state.used.bytes > most.bytes / 4 * 3);
    pthread_mutex_unlock(&disk.lock);
    uint64_t began = now_us();
    counting_since = began;
    /* Before the free space is read: later usage is seen in the next scan. */
    if (host_short)
        disk_activity_scan();
    bool fine = disk_room(&room);
    if (disk_has_own_limit(most.bytes) && fine) {
        source = DISK_FILE_SYSTEM;
        used = (struct disk_count){room.bytes - room.bytes_free, room.files - room.files_free};
        atomic_store(&disk.full, room.bytes_free < DISK_SLACK || (room.files && room.files_free < 8));
    } else {
        atomic_store(&disk.full, false);
        for (int i = 0; i < 3; i++)
            if (disk_walk(disk_root(), most.entries ? most.entries + most.entries / 4 + DISK_SLACK_ENTRIES : 0, &used, on_counting))
                break;
    }
    struct disk_suspects suspects = {.writers_n = 0};
    bool crossed = disk_is_over(&used, &most, false);
    if (near || crossed || began - last.writers_us > WRITERS_US) {
        suspects.writers_n = disk_writers(suspects.writers, DISK_WRITERS_MAX);
        last.writers_us = began;
    }
    pthread_mutex_lock(&disk.lock);
    enum disk_hidden hidden = disk_publish(&used, source, began, room.bytes_free, &suspects);
    pthread_mutex_unlock(&disk.lock);
    notify();
    /* Last: the scanned processes can make it slow. */
    if (hidden) {
        find_hidden_holders(hidden);
    } else {
        disk_hidden_reset();
        disk_activity_reset();
    }
    last.at_us = began;
    last.cost_us = now_us() - began;
    last.free = room.bytes_free;
    last.files_free = room.files_free;
    last.known = true;
}

/* ---- when to count --------------------------------------------------------------------------- */

static uint64_t wait_us = TICK_FIRST_US;

/*
 * Checks the free space. Returns true when a count is due, and sets the time until the next check.
 */
static bool is_due(const struct disk_state *s)
{
    struct disk_room room;
    uint64_t now = now_us(), since = now - last.at_us;
    if (!last.known || !disk_room(&room))
        return true;
    uint64_t grown = room.bytes_free < last.free ? last.free - room.bytes_free : 0;
    uint64_t names = room.files_free < last.files_free ? last.files_free - room.files_free : 0;
    uint64_t left = s->most.bytes > s->used.bytes ? s->most.bytes - s->used.bytes : 0;
    uint64_t names_left = s->most.entries > s->used.entries ? s->most.entries - s->used.entries : 0;
    bool urgent = s->flags || disk_was_low() || (s->most.bytes && grown > left / 2) || (s->most.entries && names > names_left / 2);
    if (grown || names) {
        /* At this speed, half of the rest is written in … */
        uint64_t floor = disk_floor_bytes(), above = room.bytes_free > floor ? room.bytes_free - floor : 0;
        if (floor && (!s->most.bytes || above < left))
            left = above;
        uint64_t next = (s->most.bytes || floor) && grown ? left / 2 * (since + 1) / grown : TICK_FIRST_US;
        wait_us = urgent || next < TICK_MIN_US ? TICK_MIN_US : next > TICK_FIRST_US ? TICK_FIRST_US : next;
        return since >= last.cost_us * (urgent ? URGENT_COST : GROWTH_COST) && (grown >= DISK_SLACK / 4 || names >= 16);
    }
    wait_us = wait_us * 2 > TICK_MAX_US ? TICK_MAX_US : wait_us * 2;
    return since >= PERIOD_US && since >= last.cost_us * PERIOD_COST;
}

static void wait_for_tick(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + wait_us * 1000;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&disk.wake, &disk.lock, &until);
}

/* A command runs, or a file request was just answered. */
static bool is_active(void) { return atomic_load(&disk.running) || now_us() - atomic_load(&disk.touched_us) < TOUCHED_US; }

void *disk_watch(void *unused)
{
    (void)unused;
    bool known_low = false;
    for (;;) {
        pthread_mutex_lock(&disk.lock);
        while (!disk.count_requested && !disk.requests && !is_active()) {
            atomic_store(&disk.asleep, true);
            /* One may have started in between. */
            if (!is_active())
                pthread_cond_wait(&disk.wake, &disk.lock);
            atomic_store(&disk.asleep, false);
            wait_us = TICK_FIRST_US;
        }
        if (!disk.count_requested && !disk.requests)
            wait_for_tick();
        bool asked = disk.requests;
        bool now = disk.count_requested;
        disk.count_requested = false;
        struct disk_state seen = disk.state;
        pthread_mutex_unlock(&disk.lock);
        bool fresh = asked && now_us() - last.at_us >= last.cost_us * GROWTH_COST;
        /* Without a budget a count is needed only for STAT. */
        bool is_low = disk_low();
        bool limited = seen.most.bytes || seen.most.entries || seen.flags || disk_floor_bytes();
        if (known_low != is_low) {
            /* Other threads call disk_low() too, without reporting the change */
            known_low = is_low;
            pthread_mutex_lock(&disk.lock);
            disk.changed = true;
            disk.base_known = false;
            pthread_mutex_unlock(&disk.lock);
            now = true;
        }
        if (now || fresh || (limited && is_due(&seen)))
            count();
        answer_requests();
    }
    return NULL;
}
