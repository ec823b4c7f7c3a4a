/* How much of the disk the workspace uses: shared by the files that count it, watch it and tell about it. */
#ifndef SBXD_DISK_H
#define SBXD_DISK_H

#include "sbxd.h"

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

/* disk_walk.c */

/*
 * Count allocated bytes and names below `root`, deleted files that are still open included, hard links once. Stops
 * early above `most` names (0: never). False when the tree changed so much meanwhile that the count is worthless.
 */
bool disk_walk(int root, uint64_t most, struct disk_count *out);

/* disk_writers.c: who wrote since we last looked */

/* Returns how many pids (at most `max`) wrote file bytes since the last call; the first call only looks. */
size_t disk_writers(pid_t *pids, size_t max);
/* The shim below which this process lives, or 0. */
pid_t disk_shim_of(pid_t pid, const pid_t *shims, size_t n);

/* disk.c */

void disk_look(struct disk_state *out);
bool disk_room(struct disk_room *out);
/* DISK_LOW or 0. */
uint8_t disk_low(void);

/* stat.c */

/* The payload of STAT_RESULT. Called by the watcher, never by the loop. */
void stat_describe(struct buf *b, uint32_t running);

#endif
