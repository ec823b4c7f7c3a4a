/*
 * The disk budget. A thread counts what the workspace uses while commands run and sleeps while none does; the loop
 * acts on what it finds.
 *
 * Where the workspace is a file system or a project quota of its own, statfs counts and the kernel is the wall. Else
 * every file is looked at, as often as the growth asks for: free space of the file system, one cheap call, tells
 * whether anything was written at all since the last look, and how much at most.
 *
 * Above the budget, while the controller allows no growth at all, or while the file system that all sandboxes share is
 * below its floor, whoever writes is ended, commands start with a
 * file size limit of 0 and file requests that write are refused, so that a user can still look and delete.
 */
#include "disk.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

#define MiB (1ull << 20)
#define TICK_MIN_US 2000
#define TICK_FIRST_US 20000
#define TICK_MAX_US 250000
#define PERIOD_US 5000000      /* a look at least this often while commands run … */
#define PERIOD_COST 200        /* … and not more than 1/200 of a CPU for it */
#define GROWTH_COST 19         /* 1/20 of a CPU while something is written */
#define URGENT_COST 2          /* a third, when the budget may be used up */
#define SLACK (256u << 10)     /* growth above the budget that does not count as writing: directories, journals */
#define SLACK_ENTRIES 64
#define WRITERS_MAX 64
#define WRITERS_US 1000000
#define TOUCHED_US 1000000
#define RECOVER_MAX (16 * MiB) /* how far below the budget writing is allowed again, at most */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake, counted;

/* Under the lock. */
static struct disk_state state;
static bool poked;                /* count now, whatever the free space says */
static struct disk_count base;    /* while writing is not allowed: what was in use */
static bool base_known;
static bool found_writers;        /* for the loop: end these, or everybody if none are known */
static pid_t writers[WRITERS_MAX];
static size_t writers_n;
static struct request {
    struct request *next;
    uint64_t session;
    uint32_t channel;
} *requests, **last_request = &requests;
static struct buf answers; /* per answer: session u64, channel u32, length u32, payload */
static uint64_t session;
static bool changed; /* DISK_STATE is due */

static atomic_bool running, asleep, full, low;
static atomic_ullong floor_bytes, floor_files; /* of the shared file system, 0 = none */
static atomic_ullong touched_us; /* the file thread changed something */
static atomic_uchar no_growth; /* flags */
static atomic_bool walled;      /* statfs tells of the workspace alone */
static atomic_uint running_count;
static int event_fd;
static int root = -1;
static bool own_file_system;

static void notify(void)
{
    uint64_t one = 1;
    (void)!write(event_fd, &one, sizeof one);
}

/* ---- what kind of workspace ------------------------------------------------------------------------------- */

/*
 * Mounted as a whole: what its file system holds is the workspace's. Not so 9p, as gVisor shows whatever it passes on:
 * its top is the directory that is passed on, and statfs tells of the disk below.
 */
static bool is_mounted_whole(void)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    static char line[16384];
    bool whole = false;
    while (f && fgets(line, sizeof line, f)) {
        char top[4096], point[4096];
        const char *type = strstr(line, " - ");
        /* The last one mounted there is the one that is seen. Names with blanks are escaped and do not match: we walk. */
        if (sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) == 2 && strcmp(point, workspace_path) == 0)
            whole = strcmp(top, "/") == 0 && type && strncmp(type, " - 9p ", 6) != 0;
    }
    if (f)
        fclose(f);
    return whole;
}

/* struct fsxattr and its request, as in linux/fs.h: which project quota a directory belongs to. */
struct project {
    uint32_t flags, extent_size, extents, id, cow_extent_size;
    uint8_t pad[8];
};
#define GET_PROJECT _IOR('X', 31, struct project)
#define INHERIT_PROJECT 0x00000200

/* With a project quota statfs tells the quota's numbers; a quota that was lost shows as a far larger file system. */
static bool has_project_quota(uint64_t budget)
{
    struct project p;
    struct statfs s;
    if (!budget || ioctl(root, GET_PROJECT, &p) < 0 || !p.id || !(p.flags & INHERIT_PROJECT) || fstatfs(root, &s) < 0)
        return false;
    return (uint64_t)s.f_blocks * (uint64_t)s.f_bsize <= budget + budget / 8;
}

bool disk_room(struct disk_room *out)
{
    struct statfs s;
    if (root < 0 || fstatfs(root, &s) < 0)
        return false;
    uint64_t block = (uint64_t)s.f_bsize;
    *out = (struct disk_room){s.f_blocks * block, s.f_bfree * block, s.f_files, s.f_ffree};
    return true;
}

/* With a quarter more than the floor the disk is no longer short, or it would go back and forth. */
static bool is_short(uint64_t left, uint64_t floor, bool was) { return left < (was ? floor + floor / 4 : floor); }

uint8_t disk_low(void)
{
    struct disk_room room;
    uint64_t bytes = atomic_load(&floor_bytes), files = atomic_load(&floor_files);
    bool was = atomic_load(&low), is = false;
    /* What statfs tells of a workspace with a wall of its own is not the host. */
    if ((bytes || files) && !atomic_load(&walled) && disk_room(&room))
        is = is_short(room.bytes_free, bytes, was) || (room.files && is_short(room.files_free, files, was));
    if (is != was)
        atomic_store(&low, is);
    return is ? DISK_LOW : 0;
}

/* ---- counting --------------------------------------------------------------------------------------------- */

/* What the watcher remembers of its last count. Only the watcher uses it. */
static struct {
    uint64_t at_us, cost_us, free, files_free, writers_us;
    bool known;
} last;

static bool too_much(const struct disk_count *used, const struct disk_count *most, bool was)
{
    uint64_t less = 0, fewer = 0;
    if (was) {
        /* Some room first, or it would go back and forth with every block. */
        less = most->bytes / 50 < RECOVER_MAX ? most->bytes / 50 : RECOVER_MAX;
        fewer = most->entries / 50;
    }
    return (most->bytes && used->bytes > most->bytes - less) || (most->entries && used->entries > most->entries - fewer);
}

/* While nothing may grow: compare with what there was, and name who wrote. Under the lock. */
static void judge_growth(const pid_t *pids, size_t n)
{
    struct disk_count *used = &state.used;
    if (base_known && (used->bytes > base.bytes + SLACK || used->entries > base.entries + SLACK_ENTRIES)) {
        memcpy(writers, pids, n * sizeof *pids);
        writers_n = n;
        found_writers = true;
        /* Until they are gone they may write a little more, for which nobody else is to blame. */
        base_known = false;
        return;
    }
    if (!base_known || used->bytes < base.bytes)
        base.bytes = used->bytes;
    if (!base_known || used->entries < base.entries)
        base.entries = used->entries;
    base_known = true;
}

/* Under the lock: take a count over. */
static void publish(const struct disk_count *used, enum disk_source source, uint64_t began, const pid_t *pids, size_t n)
{
    bool was = state.flags & DISK_OVER, first = !state.counted_us;
    state.used = *used;
    state.source = source;
    state.counted_us = began;
    bool over = too_much(used, &state.most, was);
    state.flags = (uint8_t)((state.flags & DISK_FROZEN) | (over ? DISK_OVER : 0));
    if (!state.flags && !atomic_load(&low)) {
        base_known = false;
    } else if (over && !was && !first && !(state.flags & DISK_FROZEN)) {
        /* It has just been passed: by whoever writes. */
        memcpy(writers, pids, n * sizeof *pids);
        writers_n = n;
        found_writers = true;
        base_known = false;
    } else {
        judge_growth(pids, n);
    }
    atomic_store(&no_growth, state.flags);
    changed = changed || over != was || found_writers;
    pthread_cond_broadcast(&counted);
}

static void count(void)
{
    struct disk_count used = {0};
    struct disk_room room = {0};
    enum disk_source source = DISK_WALK;
    pthread_mutex_lock(&lock);
    struct disk_count most = state.most;
    bool near = state.flags || atomic_load(&low) || (most.bytes && state.used.bytes > most.bytes / 4 * 3);
    pthread_mutex_unlock(&lock);
    uint64_t began = now_us();
    bool fine = disk_room(&room);
    bool wall = own_file_system || has_project_quota(most.bytes);
    atomic_store(&walled, wall);
    if (fine && wall) {
        source = DISK_FILE_SYSTEM;
        used = (struct disk_count){room.bytes - room.bytes_free, room.files - room.files_free};
        atomic_store(&full, room.bytes_free < SLACK || (room.files && room.files_free < 8));
    } else {
        atomic_store(&full, false);
        for (int i = 0; i < 3; i++)
            if (disk_walk(root, most.entries ? most.entries + most.entries / 4 + SLACK_ENTRIES : 0, &used))
                break;
    }
    pid_t pids[WRITERS_MAX];
    size_t n = 0;
    bool crossed = too_much(&used, &most, false);
    if (near || crossed || began - last.writers_us > WRITERS_US) {
        n = disk_writers(pids, WRITERS_MAX);
        last.writers_us = began;
    }
    last.at_us = began;
    last.cost_us = now_us() - began;
    last.free = room.bytes_free;
    last.files_free = room.files_free;
    last.known = true;
    pthread_mutex_lock(&lock);
    publish(&used, source, began, pids, n);
    pthread_mutex_unlock(&lock);
    notify();
}

/* ---- when to count ---------------------------------------------------------------------------------------- */

static uint64_t wait_us = TICK_FIRST_US;

/* One look at the free space. Returns whether to count, and sets how long to wait for the next look. */
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
    bool urgent = s->flags || atomic_load(&low) || (s->most.bytes && grown > left / 2) || (s->most.entries && names > names_left / 2);
    if (grown || names) {
        /* At this speed, half of what is left is written in … */
        uint64_t floor = atomic_load(&floor_bytes), above = room.bytes_free > floor ? room.bytes_free - floor : 0;
        if (floor && (!s->most.bytes || above < left))
            left = above;
        uint64_t next = (s->most.bytes || floor) && grown ? left / 2 * (since + 1) / grown : TICK_FIRST_US;
        wait_us = urgent || next < TICK_MIN_US ? TICK_MIN_US : next > TICK_FIRST_US ? TICK_FIRST_US : next;
        return since >= last.cost_us * (urgent ? URGENT_COST : GROWTH_COST) && (grown >= SLACK / 4 || names >= 16);
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
    pthread_cond_timedwait(&wake, &lock, &until);
}

static void answer_requests(struct request *r)
{
    while (r) {
        struct request *next = r->next;
        struct buf b = {0};
        stat_describe(&b, atomic_load(&running_count));
        pthread_mutex_lock(&lock);
        buf64(&answers, r->session);
        buf32(&answers, r->channel);
        buf32(&answers, (uint32_t)b.len);
        buf_bytes(&answers, b.p, b.len);
        pthread_mutex_unlock(&lock);
        free(b.p);
        free(r);
        r = next;
        notify();
    }
}

/* A command runs, or a file request was answered a moment ago. */
static bool is_active(void) { return atomic_load(&running) || now_us() - atomic_load(&touched_us) < TOUCHED_US; }

static void *watch(void *unused)
{
    (void)unused;
    bool known_low = false;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!poked && !requests && !is_active()) {
            atomic_store(&asleep, true);
            /* It may have begun between the two. */
            if (!is_active())
                pthread_cond_wait(&wake, &lock);
            atomic_store(&asleep, false);
            wait_us = TICK_FIRST_US;
        }
        if (!poked && !requests)
            wait_for_tick();
        struct request *asked = requests;
        requests = NULL;
        last_request = &requests;
        bool now = poked;
        poked = false;
        struct disk_state seen = state;
        pthread_mutex_unlock(&lock);
        bool fresh = asked && now_us() - last.at_us >= last.cost_us * GROWTH_COST;
        /* Without a budget nobody needs to know until somebody asks. */
        bool is_low = disk_low();
        bool limited = seen.most.bytes || seen.most.entries || seen.flags || atomic_load(&floor_bytes);
        if (known_low != is_low) {
            known_low = is_low; /* `low` itself is looked at by others too, who tell nobody */
            pthread_mutex_lock(&lock);
            changed = true;
            base_known = false;
            pthread_mutex_unlock(&lock);
            now = true;
        }
        if (now || fresh || (limited && is_due(&seen)))
            count();
        answer_requests(asked);
    }
    return NULL;
}

/* ---- for the loop and the file thread --------------------------------------------------------------------- */

void disk_look(struct disk_state *out)
{
    pthread_mutex_lock(&lock);
    *out = state;
    pthread_mutex_unlock(&lock);
}

static void poke(void)
{
    poked = true;
    pthread_cond_signal(&wake);
}

void disk_running(size_t commands_running)
{
    atomic_store(&running_count, (unsigned)commands_running);
    atomic_store(&running, commands_running > 0);
    if (commands_running && atomic_load(&asleep)) {
        pthread_mutex_lock(&lock);
        pthread_cond_signal(&wake);
        pthread_mutex_unlock(&lock);
    }
}

bool disk_no_growth(void) { return atomic_load(&no_growth) || disk_low(); }

bool disk_full(void)
{
    struct disk_room room;
    return atomic_load(&full) || (own_file_system && disk_room(&room) && room.bytes_free < SLACK);
}

bool disk_settling(uint64_t ended_us)
{
    if (!(atomic_load(&no_growth) & DISK_OVER))
        return false;
    pthread_mutex_lock(&lock);
    bool waiting = state.flags & DISK_OVER && state.counted_us < ended_us;
    if (waiting)
        poke();
    pthread_mutex_unlock(&lock);
    return waiting;
}

int disk_refusal(void) { return disk_no_growth() ? EDQUOT : 0; }

void disk_file_changed(void)
{
    uint64_t now = now_us();
    atomic_store(&touched_us, now);
    pthread_mutex_lock(&lock);
    if (state.flags & DISK_OVER)
        poke();
    else if (atomic_load(&asleep))
        pthread_cond_signal(&wake);
    while (state.flags & DISK_OVER && state.counted_us < now)
        pthread_cond_wait(&counted, &lock);
    pthread_mutex_unlock(&lock);
}

static void send_state(uint32_t channel)
{
    struct disk_state s;
    struct buf b = {0};
    disk_look(&s);
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

void disk_budget(uint16_t flags, uint32_t channel, const uint8_t *p, size_t n)
{
    struct reader r = {p, n, false};
    struct disk_count most = {.bytes = rd64(&r)};
    most.entries = rd64(&r);
    uint64_t host_bytes = rd64(&r), host_files = rd64(&r);
    pthread_mutex_lock(&lock);
    if (!r.bad) {
        bool differs = most.bytes != state.most.bytes || most.entries != state.most.entries;
        uint8_t frozen = flags & F_FREEZE ? DISK_FROZEN : 0;
        state.most = most;
        /* Known before the floor is, or a small workspace with a wall would be taken for a full host. */
        atomic_store(&walled, own_file_system || has_project_quota(most.bytes));
        atomic_store(&floor_bytes, host_bytes);
        atomic_store(&floor_files, host_files);
        if (frozen != (state.flags & DISK_FROZEN)) {
            state.flags = (uint8_t)((state.flags & DISK_OVER) | frozen);
            base_known = false;
            differs = true;
        }
        atomic_store(&no_growth, state.flags);
        if (differs)
            poke();
    }
    pthread_mutex_unlock(&lock);
    send_state(channel);
}

void disk_stat(uint32_t channel)
{
    struct request *r = malloc(sizeof *r);
    if (!r)
        die("out of memory");
    pthread_mutex_lock(&lock);
    *r = (struct request){NULL, session, channel};
    *last_request = r;
    last_request = &r->next;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

void disk_forget(void)
{
    pthread_mutex_lock(&lock);
    session++;
    pthread_mutex_unlock(&lock);
}

static void end_writers(const pid_t *pids, size_t n)
{
    size_t shims_n;
    pid_t *shims = command_shims(&shims_n), writing[WRITERS_MAX];
    static uint64_t ended_us;
    /* Nobody is known because who wrote has just been ended: then nobody else is to blame. */
    bool any = now_us() - ended_us < WRITERS_US;
    /* Once for each: the way up may be as long as a command likes to make it. */
    for (size_t i = 0; shims && i < n; i++)
        writing[i] = disk_shim_of(pids[i], shims, shims_n);
    for (int everybody = 0; shims && everybody < (any ? 1 : 2); everybody++)
        for (struct command *c = commands; c; c = c->next) {
            bool writes = everybody;
            for (size_t i = 0; i < n && !writes; i++)
                writes = c->shim > 0 && c->shim == writing[i];
            if (c->dead || c->state >= KILLING || !writes)
                continue;
            any = true;
            ended_us = now_us();
            command_begin_end(c, CAUSE_DISK_QUOTA, 0);
        }
    free(shims);
}

void disk_event(void)
{
    uint64_t ignored;
    (void)!read(event_fd, &ignored, sizeof ignored);
    pthread_mutex_lock(&lock);
    struct buf done = answers;
    answers = (struct buf){0};
    bool tell = changed, end = found_writers;
    changed = found_writers = false;
    pid_t pids[WRITERS_MAX];
    size_t n = writers_n;
    memcpy(pids, writers, n * sizeof *pids);
    uint64_t current = session;
    pthread_mutex_unlock(&lock);
    if (end)
        end_writers(pids, n);
    if (tell && welcomed)
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
    for (struct command *c = commands; c; c = c->next)
        if (!c->dead)
            command_maybe_finish(c);
}

int disk_eventfd(void) { return event_fd; }

void disk_init(void)
{
    root = openat(workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_file_system = root >= 0 && is_mounted_whole();
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &monotonic);
    pthread_cond_init(&counted, &monotonic);
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 << 10);
    if (root < 0 || event_fd < 0 || pthread_create(&thread, &attr, watch, NULL) != 0)
        die("cannot start the disk thread");
    pthread_attr_destroy(&attr);
}
