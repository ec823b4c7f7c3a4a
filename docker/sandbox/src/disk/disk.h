/* How much of the disk the workspace uses: shared by the files that count it, watch it and tell about it. */
#ifndef SBXD_DISK_H
#define SBXD_DISK_H

#include "../wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>

#define DISK_SLACK (256u << 10) /* growth above the budget that does not count as writing: directories, journals */
#define DISK_SLACK_ENTRIES 64
#define DISK_WRITERS_MAX 64
#define DISK_PATIENCE_US 2000000 /* nobody waits longer for a count */

/* Who counted. */
enum disk_source {
    DISK_UNKNOWN = 0,
    DISK_WALK = 1,        /* we: every file of the workspace was looked at */
    DISK_FILE_SYSTEM = 2, /* the kernel: the workspace is a file system or a project quota of its own */
};

struct disk_count {
    uint64_t bytes, entries;
};

/* Room of the file system that the workspace is on, all of it for everybody. */
struct disk_room {
    uint64_t bytes, bytes_free, files, files_free;
};

/* Set in DISK_STATE and STAT_RESULT. */
#define DISK_OVER 0x01   /* above the budget */
#define DISK_FROZEN 0x02 /* the controller allows no growth, whatever the budget */
#define DISK_LOW 0x04    /* the file system that everybody shares is below its floor: no growth either */

struct disk_state {
    struct disk_count used, most; /* `most`: the budget, 0 = none */
    enum disk_source source;
    uint8_t flags; /* without DISK_LOW, which is asked for when it is needed */
    uint64_t counted_us; /* when the last count began, 0 = never */
};

/* Processes that could be to blame. */
struct disk_suspects {
    pid_t writers[DISK_WRITERS_MAX];
    size_t writers_n;
};

/* ---- budget.c: for the loop and the other threads ----------------------------------------------------------------- */

void disk_init(void);
int disk_eventfd(void);
/*
 * Tells the controller what was counted and answers STAT. Returns whether commands are to be ended: those of the
 * processes that were `found`, or everybody's if it was none of them, unless it can be `only_these`.
 */
bool disk_event(struct disk_suspects *found, bool *only_these);
void disk_budget(const struct frame *f);
void disk_stat(const struct frame *f);
/* A new controller: answers for the old one are thrown away. */
void disk_forget(void);
/* Called once a loop round: while nothing runs, nothing is watched. */
void disk_running(size_t commands_running);
/* Commands start, but may not make a file grow. */
bool disk_no_growth(void);
/* The workspace is a file system of its own, and full. */
bool disk_full(void);
/* Above the budget, and what ended at this time may have changed that: the count is not in yet. Not for long. */
bool disk_settling(uint64_t ended_us);
/* For the file thread: 0, or why nothing may be written. */
int disk_refusal(void);
/* For the file thread: bytes were freed or added. Waits, not for long, for a new count while that decides what may be written. */
void disk_file_changed(void);

/* ---- for the files of this folder --------------------------------------------------------------------------------- */

/* walk.c */

/*
 * Count allocated bytes and names below `root`, deleted files that are still open included, hard links once. Stops
 * early above `most` names (0: never), and of descriptors those that a second is enough for. False when the tree changed so much meanwhile that the count is worthless. Calls
 * `meanwhile` after every thousand names or so.
 */
bool disk_walk(int root, uint64_t most, struct disk_count *out, void (*meanwhile)(void));

/* writers.c: who wrote since we last looked */

/* Returns how many pids (at most `max`) wrote file bytes since the last call; the first call only looks. */
size_t disk_writers(pid_t *pids, size_t max);

/* hiders.c */

/*
 * How many pids (at most `max`) may hold bytes of deleted files where disk_walk cannot see them, in this look and the one
 * before: a process that has just begun looks like one that hides. Of those, the ones that did something, or `sleepers` as
 * well. Takes half a second of CPU at most; calls `meanwhile` meanwhile.
 */
size_t disk_hiders(pid_t *pids, size_t max, bool sleepers, void (*meanwhile)(void));
/* There was nothing to look for: the next look is a first one. */
void disk_hiders_forget(void);

/* acts.c: who did what could take room, while the host is short of disk. Only the watcher uses it. */

void disk_acts_look(void);
/* Nothing is hidden so far: only what is done after the last look matters. */
void disk_acts_forget(void);
bool disk_acted(pid_t pid);
/* Somebody of this sandbox did, or may have before he ended. */
bool disk_anybody_acted(void);


/* A STAT that waits for its answer. */
struct disk_request {
    struct disk_request *next;
    uint64_t session;
    uint32_t channel;
};

/* What the watcher and the loop share. */
extern struct disk {
    pthread_mutex_t lock;
    pthread_cond_t wake, counted;
    int event_fd; /* for the loop: something of this is for it */

    /* Under the lock. */
    struct disk_state state;
    bool poked;             /* count now, whatever the free space says */
    struct disk_count base; /* while writing is not allowed: what was in use … */
    uint64_t base_free;     /* … and how much room was left on the disk */
    bool base_known;
    bool found_writers;     /* for the loop: end these, or everybody if none are known */
    bool only_these;        /* if it was none of them, it was somebody else's sandbox */
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

void disk_look(struct disk_state *out);

/* watch.c: a thread, for ever */

void *disk_watch(void *unused);

/* judge.c: under the lock */

/* `was`: it was too much before, so some room is wanted first. */
bool disk_too_much(const struct disk_count *used, const struct disk_count *most, bool was);
/* How much the room of a host that is short of disk has shrunk, though nothing grows that is counted. */
enum disk_hidden {
    HIDDEN_NOTHING,
    HIDDEN_SOME, /* enough to end who may have done it himself */
    HIDDEN_MUCH, /* enough to end who may hold it for somebody else */
};
/* Take over a count that began then, with so much room left on the disk, and those who could be to blame. */
enum disk_hidden disk_publish(const struct disk_count *used, enum disk_source source, uint64_t began, uint64_t room, const struct disk_suspects *s);
/* These may be who. */
void disk_blame_hiders(const struct disk_suspects *s);

/* room.c: for any thread */

void disk_room_init(void);
int disk_root(void);
bool disk_room(struct disk_room *out);
/* The file system that everybody shares is to keep this free; 0 = nothing. */
void disk_floor(uint64_t bytes, uint64_t files);
uint64_t disk_floor_bytes(void);
/* Looks: DISK_LOW or 0. */
uint8_t disk_low(void);
/* What the last look said. */
bool disk_was_low(void);
/* The workspace is a file system of its own, or has a project quota of about this budget. */
bool disk_walled(uint64_t budget);
/* It is a file system of its own, and nothing more fits. */
bool disk_brim_full(void);

/* stat.c */

/* The payload of STAT_RESULT. Called by the watcher, never by the loop. */
void stat_describe(struct buf *b, uint32_t running);

#endif
