/* Disk usage of the workspace: counting, watching, limiting and reporting it. */
#ifndef SBXD_DISK_H
#define SBXD_DISK_H

#include "../wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>

/* Growth above the budget that does not count as writing: directories, journals */
#define DISK_SLACK (256u << 10)
#define DISK_SLACK_ENTRIES 64
#define DISK_WRITERS_MAX 64
#define DISK_COUNT_TIMEOUT_US 2000000 /* the longest wait for a count */

/* The source of a count. */
enum disk_source {
    DISK_UNKNOWN = 0,
    DISK_WALK = 1,        /* sbxd: every file of the workspace was counted */
    /* The kernel: the workspace has its own file system or project quota */
    DISK_FILE_SYSTEM = 2,
};

struct disk_count {
    uint64_t bytes, entries;
};

/* Free space of the workspace's file system, for all of its users. */
struct disk_room {
    uint64_t bytes, bytes_free, files, files_free;
};

/* Set in DISK_STATE and STAT_RESULT. */
#define DISK_OVER 0x01   /* above the budget */
#define DISK_FROZEN 0x02 /* the controller forbids growth */
#define DISK_LOW 0x04    /* the shared file system is below its floor: no growth either */

struct disk_state {
    struct disk_count used, most; /* `most`: the budget, 0 = none */
    enum disk_source source;
    uint8_t flags; /* without DISK_LOW, which is computed when it is needed */
    uint64_t counted_us; /* when the last count began, 0 = never */
};

/* Processes that may have written. */
struct disk_suspects {
    pid_t writers[DISK_WRITERS_MAX];
    size_t writers_n;
};

/* ---- budget.c: for the loop and the other threads -------------------------------------------- */

void disk_init(void);
int disk_eventfd(void);
/*
 * Sends the state to the controller and answers STAT. Returns true when commands must be ended:
 * those of the processes `found`, or all of them if none matches, unless `only_these`.
 */
bool disk_collect(struct disk_suspects *found, bool *only_these);
void disk_budget(const struct frame *f);
void disk_stat(const struct frame *f);
/* A new controller: answers for the old one are discarded. */
void disk_forget(void);
/* Called once per loop round: without commands nothing is watched. */
void disk_running(size_t commands_running);
/* Commands start, but may not make a file grow. */
bool disk_no_growth(void);
/* The workspace is a file system of its own, and full. */
bool disk_full(void);
/*
 * Above the budget, and an end at this time may have changed that: the count is pending, with a
 * timeout.
 */
bool disk_count_pending(uint64_t ended_us);
/* For the file thread: 0, or the errno of a refused write. */
int disk_refusal(void);
/*
 * For the file thread: bytes were freed or added. Waits, with a timeout, for a new count while
 * writing depends on it.
 */
void disk_file_changed(void);

/* ---- for the files of this folder ------------------------------------------------------------ */

/* walk.c */

/*
 * Counts allocated bytes and names below `root`, deleted files that are still open included, hard
 * links once. Stops early above `most` names (0: never), and counts descriptors for at most a
 * second. False when the tree changed so much that the count is useless. Calls `on_progress` about
 * every thousand names.
 */
bool disk_walk(int root, uint64_t most, struct disk_count *out, void (*on_progress)(void));

/* writers.c: processes that wrote since the last call */

/*
 * Returns the number of pids (at most `max`) that wrote file bytes since the last call; the first
 * call only initializes.
 */
size_t disk_writers(pid_t *pids, size_t max);

/* hidden.c */

/*
 * Returns the number of pids (at most `max`) that may hold bytes of deleted files unseen by
 * disk_walk, in this scan and the one before: a process that has just started looks the same. Only
 * active ones, or `sleepers` as well. Takes half a second of CPU at most, and calls `on_progress`.
 */
size_t disk_hidden_holders(pid_t *pids, size_t max, bool sleepers, void (*on_progress)(void));
/* Nothing is hidden: the next scan counts as the first. */
void disk_hidden_reset(void);

/*
 * activity.c: processes that may have used space while the host is short of disk. For the watcher
 * only.
 */

void disk_activity_scan(void);
/* Nothing is hidden so far: only activity after the last scan counts. */
void disk_activity_reset(void);
bool disk_was_active(pid_t pid);
/* A process of this sandbox was active, or may have been before it ended. */
bool disk_any_active(void);


/* A pending STAT. */
struct disk_request {
    struct disk_request *next;
    uint64_t session;
    uint32_t channel;
};

/* State shared by the watcher and the loop. */
extern struct disk {
    pthread_mutex_t lock;
    pthread_cond_t wake, counted;
    int event_fd; /* wakes the loop */

    /* Under the lock. */
    struct disk_state state;
    bool count_requested; /* count now, regardless of the free space */
    struct disk_count base; /* while writing is forbidden: usage … */
    uint64_t base_free;     /* … and free space on the disk */
    bool base_known;
    bool writers_found; /* for the loop: end these, or all if it is empty */
    bool only_these; /* if none matches, another sandbox wrote */
    struct disk_suspects writers;
    struct disk_request *requests, **last_request;
    struct buf answers; /* per answer: session u64, channel u32, length u32, payload */
    uint64_t session;
    bool changed; /* DISK_STATE is due */

    atomic_bool running, asleep, full;
    atomic_ullong touched_us; /* the file thread changed something */
    atomic_uchar no_growth;   /* flags */
    atomic_uint running_count;
} disk;

void disk_get_state(struct disk_state *out);

/* watch.c: a thread, for ever */

void *disk_watch(void *unused);

/* evaluate.c: under the lock */

/* `was`: it was over before, so some hysteresis applies. */
bool disk_is_over(const struct disk_count *used, const struct disk_count *most, bool was);
/* Shrinkage of a short host's free space without any counted byte. */
enum disk_hidden {
    HIDDEN_NOTHING,
    HIDDEN_SOME, /* enough to end a process that may have caused it */
    HIDDEN_MUCH, /* enough to end a process that may hold it for another */
};
/* Stores a count that began at `began`, with the free space of the disk and the suspects. */
enum disk_hidden disk_publish(const struct disk_count *used, enum disk_source source, uint64_t began, uint64_t room, const struct disk_suspects *s);
/* Makes these holders of hidden bytes the suspects. */
void disk_blame_hidden(const struct disk_suspects *s);

/* room.c: for any thread */

void disk_room_init(void);
int disk_root(void);
bool disk_room(struct disk_room *out);
/* Free space that the shared file system must keep; 0 = none. */
void disk_floor(uint64_t bytes, uint64_t files);
uint64_t disk_floor_bytes(void);
/* Computes DISK_LOW or 0. */
uint8_t disk_low(void);
/* The result of the last disk_low(). */
bool disk_was_low(void);
/* The workspace has its own file system, or a project quota of about this budget. */
bool disk_has_own_limit(uint64_t budget);
/* It has its own file system, which is full. */
bool disk_own_full(void);

/* stat.c */

/* The payload of STAT_RESULT. Called by the watcher, never by the loop. */
void stat_describe(struct buf *b, uint32_t running);

#endif
