/* File requests, and the staging directory in the workspace. */
#ifndef SBXD_FILES_H
#define SBXD_FILES_H

#include "../wire/wire.h"

#define PATH_BYTES 4096
#define STAGING_DIR ".tool-outputs"
#define STAGING_PREFIX ".staging-"

/* ---- thread.c: file requests, answered by one thread so that a slow disk delays no command --- */

void files_init(void);
int files_eventfd(void);
void files_submit(const struct frame *f);
/* Moves finished answers to the wire. */
void files_collect(void);
/* A new controller: forget half-written files and answers for the old one. */
void files_forget(void);
/*
 * watches.c: the descriptor to poll, or -1; reads events; sends due notices and returns the time
 * until the next.
 */
void watches_init(void);
int watches_fd(void);
void watches_ready(void);
int watches_timers(uint64_t now_ms);
/* Empties the temporary directories, then answers RESET_DONE on this channel; 0: no answer. */
void files_empty_tmp(uint32_t channel);
/* Runs this on the file thread, after the queued jobs. */
void files_run(void (*run)(void));
/* Creates a regular file in .tool-outputs; returns a descriptor or -errno. For any thread. */
int files_open_spool(const char *name);

/* ---- for the file thread, and for writers to the staging directory --------------------------- */

struct job {
    struct job *next;
    uint64_t session;
    uint32_t channel;
    uint16_t flags;
    uint8_t type;
    void (*run)(void); /* in place of a request */
    size_t n;
    uint8_t payload[];
};

/* paths.c: reads a path of a request; 0 or an errno. */
int take_path(struct reader *r, char path[PATH_BYTES + 1]);
/* RESOLVE_NO_SYMLINKS, or 0 where a request follows symbolic links. */
uint64_t resolve_flags(const struct job *j);
/* paths.c: these return a descriptor, or 0, or -1 with errno. */
int open_beneath(int dir, const char *path, uint64_t flags, mode_t mode, uint64_t resolve);
/* walk.c: open_beneath on a kernel without openat2. */
int walk_beneath(int root, const char *path, uint64_t flags, mode_t mode, bool no_links);
/*
 * walk.c: resolves the symbolic links of `path`, relative to `root`; missing components stay as
 * given. 0 or an errno.
 */
int walk_resolve(int root, const char *path, char resolved[PATH_BYTES + 1]);
/* `resolve`: RESOLVE_NO_SYMLINKS, or 0. */
int open_parent(char *path, const char **name, uint64_t resolve);
int make_directories(char *path, uint64_t resolve);
/* renameat, or with `is_new` EEXIST if the target exists; returns 0 or an errno. */
int rename_to(int from_dir, const char *from, int to_dir, const char *to, bool is_new);
int staging_dir(bool make);
/* The existing one, with its permissions restored where a command has closed it to sbxd. */
int staging_dir_unlocked(void);
int create_staged(const char *name);
/* Removes the staging directory if it is empty: a workspace without long outputs stays clean. */
void staging_remove_if_empty(void);

/*
 * requests.c: returns 0 or an errno; adds the payload of the answer to `out` and its flags to
 * `flags`.
 */
int file_request(const struct job *j, struct buf *out, uint16_t *flags);
/* writes.c, remove.c: these return 0 or an errno. */
int write_piece(const struct job *j, struct reader *r);
/* Aborts the unfinished writes of every other session. */
void writes_forget(uint64_t session);
int remove_path(char *path, bool recursive, uint64_t resolve);
/*
 * changes.c: stores a snapshot of the workspace under this number, and reports later differences,
 * which forgets it. 0 or an errno.
 */
int take_snapshot(uint32_t handle, struct buf *out);
int report_changes(uint32_t handle, struct buf *out);
void snapshots_forget(void);
/* Removes every removable entry. */
int empty_directory(int dir);
/* watches.c: watches these directories as the controller's set of this number. 0 or an errno. */
int watch_directories(uint32_t which, struct reader *r, struct buf *out);
void watches_forget(void);

#endif
