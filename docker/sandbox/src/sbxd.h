/* Shared declarations of the supervisor. Each .c file is one thought; see the comment at its top. */
#ifndef SBXD_H
#define SBXD_H

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "wire/protocol.h"

#define ID_BYTES 16
#define KEY_BYTES 32
#define NONCE_BYTES 16
#define MAX_COMMANDS 256          /* running plus ended but not acknowledged */
#define MAX_RUNNING 128
#define WINDOW_BYTES (2u << 20)   /* replay window of one stream while memory is plenty */
#define WINDOW_MIN (256u << 10)   /* … and when RING_BUDGET is used up */
#define RING_BUDGET (32u << 20)
#define STDIN_WINDOW (256u << 10)
#define SPOOL_AFTER_MAX (128u << 10) /* must stay below WINDOW_MIN: these bytes are kept until the file exists */
#define START_MAX (1u << 20)
#define DRAIN_MS 200
#define SHIM_PATIENCE_MS 2000
#define SWEEP_MS 5
#define GATHER_US 500        /* small pieces of output wait this long for more … */
#define GATHER_BYTES 16384   /* … or until there is so much */

/* ---- wire/bytes.c: little-endian fields ------------------------------------------------------------------------ */

struct reader {
    const uint8_t *p;
    size_t left;
    bool bad;
};
uint8_t rd8(struct reader *r);
uint16_t rd16(struct reader *r);
uint32_t rd32(struct reader *r);
uint64_t rd64(struct reader *r);
const uint8_t *rdn(struct reader *r, size_t n);

void put16(uint8_t *p, uint16_t v);
void put32(uint8_t *p, uint32_t v);
void put64(uint8_t *p, uint64_t v);
uint32_t get32(const uint8_t *p);

struct buf {
    uint8_t *p;
    size_t len, cap;
};
/* Returns room for n more bytes and counts them as used. Aborts when memory is gone. */
uint8_t *buf_add(struct buf *b, size_t n);
void buf8(struct buf *b, uint8_t v);
void buf16(struct buf *b, uint16_t v);
void buf32(struct buf *b, uint32_t v);
void buf64(struct buf *b, uint64_t v);
void buf_bytes(struct buf *b, const void *p, size_t n);

/* ---- wire/sha256.c: begins zeroed ------------------------------------------------------------------------------ */

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
};
void sha256_add(struct sha256 *s, const void *data, size_t n);
/* The hash of all that was added; `s` stays as it is. */
void sha256_end(const struct sha256 *s, uint8_t out[32]);

/* ---- wire/checks.c: CRC-32C, HMAC --------------------------------------------------------------------- */

uint32_t crc32c(uint32_t start, const void *data, size_t n);
void hmac_sha256(const uint8_t key[KEY_BYTES], const void *data, size_t n, uint8_t out[32]);
bool equal_secret(const uint8_t *a, const uint8_t *b, size_t n);

/* ---- commands/ring.c: bytes of one stream, addressed by their offset ------------------------------------------------ */

struct ring {
    uint8_t *p;
    size_t cap;         /* power of two, 0 before the first byte */
    uint64_t base, end; /* offsets of the first kept byte and of the next one */
};
/* Bytes that may be added now without passing the window. */
size_t ring_space(const struct ring *r);
/* Make room for at least one more byte; at most two pieces are returned (count in the result, 0 = no room). */
int ring_room(struct ring *r, struct iovec out[2]);
int ring_slice(const struct ring *r, uint64_t from, size_t n, struct iovec out[2]);
void ring_drop(struct ring *r, uint64_t upto);
void ring_free(struct ring *r);

/* ---- commands/flood.c: batches when much is written ------------------------------------------------------------------ */

/* Bytes that a command wrote were read. */
void flood_read(size_t bytes);
/* Called before each wait of the loop; waits a moment in a flood. */
void flood_rest(void);

/* ---- proc.c: who descends from whom, and signals to them ---------------------------------------------------- */

/* Calls `each` with every process that /proc shows: its number, and the descriptor of /proc that its files are below. */
void proc_each(void (*each)(void *context, int proc, const char *pid), void *context);
/* The same with every thread of a process, and the descriptor of its folder of threads. */
void proc_each_thread(int proc, const char *pid, void (*each)(void *context, int tasks, const char *tid), void *context);
/* 0 when there is no such process. */
pid_t proc_parent(pid_t pid);
/* Reads a small file of /proc as text, from `at` on, as for openat. Returns its length, or -1; the text always ends. */
ssize_t proc_read(int at, const char *path, char *text, size_t size);

/*
 * Signal every living descendant of `root` that is not one of `except` or below one of them. Returns how many
 * were found (zombies do not count).
 */
size_t proc_signal_tree(pid_t root, const pid_t *except, size_t excepts, int sig);
/* Stop, then kill, everything below root. Returns how many were found; call again until it is 0. */
size_t proc_kill_tree(pid_t root, const pid_t *except, size_t excepts);

/* ---- commands/shim.c: the small process between sbxd and one command -------------------------------------------------- */

/* The resources that a START may limit; the order is that of the protocol. */
#define LIMIT_KINDS 4
struct limits {
    uint8_t set; /* one bit per kind */
    uint64_t most[LIMIT_KINDS];
    uint8_t nice;
};
extern const int limit_resources[LIMIT_KINDS];

struct shim_job {
    const struct limits *limits;
    char **argv;
    char **envp;
    const char *workspace;
    const char *cwd; /* NULL: the workspace */
    int in, out, err, ctl;
    bool terminal; /* in, out and err are one, and become the controlling terminal */
    int memory;    /* passed on to the command, or -1 */
    bool cwd_may_fail; /* then it begins in the workspace, and STARTED says so */
    bool capped; /* may not make a file grow */
};

enum shim_event { SHIM_STARTED = 1, SHIM_FAILED = 2, SHIM_EXITED = 3, SHIM_GONE = 4 };
/* Page faults without and with reading from disk, blocks of 512 bytes read and written, switches wanted and forced. */
#define USAGE_COUNT 6
struct shim_report {
    uint32_t event;
    int32_t value; /* STARTED: pid. FAILED: errno. EXITED: wait status */
    int32_t stage; /* STARTED: 1 when it begins in the workspace instead of cwd. FAILED: stage. EXITED: 1 when descendants are left */
    uint64_t user_us, system_us, max_rss_kb;
    uint64_t usage[USAGE_COUNT];
};

enum shim_order { ORDER_SIGNAL = 1, ORDER_KILL = 2 };
struct shim_command {
    uint32_t order;
    int32_t signal;
    int32_t scope;
};
_Noreturn void shim_run(const struct shim_job *job);

/* ---- commands/oom.c: the cgroup's count of kernel OOM kills ------------------------------------------------------------ */

void oom_open(void);
/* While we are dumpable: take hold of our own OOM score. */
void oom_score_open(void);
/* Whoever is forked while this is on dies of a full memory before sbxd does. */
void oom_offer(bool on);
/* Kernel OOM kills so far in this cgroup, 0 where it cannot be read. */
uint64_t oom_kills(void);

/* ---- wire/frames_in.c, wire/frames_out.c: frames in and out ------------------------------------------------------------------------ */

void frame_out(uint8_t type, uint16_t flags, uint32_t channel, const void *payload, size_t n);
/* For the pump: is anything queued, and writing it. */
void wire_init(void);
void wire_readable(void);
void wire_pump(void);
bool wire_wants_write(void);
bool wire_wants_read(void);
/* Bytes that wait for the controller to read. */
size_t wire_queued(void);
extern bool wire_ended;    /* stdin is at its end: no controller will ever come */
extern bool welcomed;      /* a controller has said HELLO */
extern uint64_t frames_in; /* good frames received, for the lease */
extern uint8_t boot_id[ID_BYTES];

/* ---- commands: what the loop and the wire call; the rest, by file, is in commands/command.h ---------------------------------- */

struct command;
enum source_kind { SRC_STDIN_FRAMES, SRC_STDOUT_FRAMES, SRC_FILES, SRC_DISK, SRC_SIGNALS, SRC_SPOOL, SRC_CMD_OUT, SRC_CMD_IN, SRC_CMD_CTL, SRC_EGRESS_LISTENER, SRC_EGRESS };
struct source {
    enum source_kind kind;
    struct command *cmd;
    int which;
};

struct stream {
    struct source src;
    int fd;            /* -1 once at its end */
    bool polled;
    struct ring ring;
    struct ring tail;   /* the last bytes of a cut output */
    uint64_t total;     /* bytes produced */
    uint64_t rest;      /* once no process is left: bytes that were still in the pipe then */
    struct sha256 hash; /* of all of them but the last in the ring; the thread's while it is hashing (commands/hash.c) */
    bool hashing;
    uint64_t hashed; /* while it is hashing: bytes hashed before it began */
    uint64_t sent;     /* next offset to send on the current channel */
    uint64_t sent_us;  /* when something was sent last */
    uint64_t limit;    /* the controller's credit: send below this offset */
    uint64_t acked;
};

void commands_event(struct source *src, uint32_t events);
/* A new controller: forget a request that came only in part. */
void starts_forget(void);
void commands_start(uint16_t flags, uint32_t channel, const uint8_t *p, size_t n);
void commands_attach(uint32_t channel, const uint8_t *p, size_t n);
void commands_data(uint32_t channel, uint16_t flags, const uint8_t *p, size_t n);
void commands_eof(uint32_t channel, uint16_t flags, const uint8_t *p, size_t n);
void commands_credit(uint32_t channel, const uint8_t *p, size_t n);
void commands_ack(uint32_t channel, uint16_t flags, const uint8_t *p, size_t n);
void commands_signal(uint32_t channel, const uint8_t *p, size_t n);
void commands_cancel(uint32_t channel, const uint8_t *p, size_t n);
void commands_resize(uint32_t channel, const uint8_t *p, size_t n);
void commands_reset(uint32_t channel);
void reset_forget(void);
void commands_describe(struct buf *b);
/* A new controller: nothing is attached any more. */
void commands_detach_all(void);
/* Collect dead children; whatever was adopted is an escapee. */
void commands_reap(void);
/* Milliseconds until something is due, or -1. */
int commands_timers(uint64_t now_ms);
/* The next stream with bytes that may be sent, fairly; NULL when there is none. */
struct command *commands_next_sendable(struct stream **stream, uint32_t *channel, int *which);
void commands_sent(struct command *c);
/* Called once a loop round, when what may be sent is on its way. */
void commands_hash(void);
void commands_bury(void);

/* ---- files/thread.c: file requests, answered by one thread so that a slow disk never delays a command -------------------- */

void files_init(void);
int files_eventfd(void);
void files_submit(uint8_t type, uint16_t flags, uint32_t channel, const uint8_t *p, size_t n);
/* Move finished answers to the wire. */
void files_collect(void);
/* A new controller: forget half-written files and answers for the old one. */
void files_forget(void);
/* Empty the temporary directories, then answer RESET_DONE on this channel; nobody when it is 0. */
void files_clean_tmp(uint32_t channel);
/* Have the sessions written (sessions/store.c). */
void files_write_sessions(void);
/* A regular file in .tool-outputs, made anew; returns a descriptor or -errno. For any thread. */
int files_open_spool(const char *name);

/* ---- commands/spool.c: whole copies of long outputs, written by a thread of their own -------------------------------------- */

/* The thread has got on. */
void spool_progress(void);

/* ---- egress: connections of programs inside, carried to the controller ------------------------------------------- */

void egress_event(struct source *src, uint32_t events);
/* Bytes of connections to the wire, fairly, as far as there is room and credit. */
void egress_pump(void);
/* Milliseconds until there is more to pump; -1 when something else will wake us for it. */
int egress_wait(void);
/* Once a round, after the wire was pumped: whether new connections are to wake us. */
void egress_poll(uint64_t now_ms);
void egress_timers(uint64_t now_ms);
/* A new controller: connections belong to the last one and end; the listener stays for a while. */
void egress_forget(void);
void egress_listen(uint32_t channel, const uint8_t *p, size_t n);
void egress_result(uint32_t channel, const uint8_t *p, size_t n);
void egress_data(uint32_t channel, const uint8_t *p, size_t n);
void egress_credit(uint32_t channel, const uint8_t *p, size_t n);
void egress_eof(uint32_t channel, const uint8_t *p, size_t n);
void egress_close(uint32_t channel);

/* ---- disk/budget.c (the rest is in disk/disk.h): how much the workspace holds, and the budget for it ------------------------------------------------- */

void disk_init(void);
int disk_eventfd(void);
/* Act on what was counted: end writers, tell the controller, answer STAT. */
void disk_event(void);
void disk_budget(uint16_t flags, uint32_t channel, const uint8_t *p, size_t n);
void disk_stat(uint32_t channel);
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

/* ---- arguments.c --------------------------------------------------------------------------------------------------- */

/* Fills the variables of main.c; ends with a word on what it does not know. */
void read_arguments(int argc, char **argv);

/* ---- main.c -------------------------------------------------------------------------------------------------------- */

extern bool is_init; /* we are PID 1 of a PID namespace */
extern const char *workspace_path;
extern int workspace_fd;
extern const char *tmp_dirs[4];
extern int epoll_fd;
extern uint8_t sandbox_key[KEY_BYTES];
extern sigset_t all_signals;
extern uint64_t lease_ms; /* 0: none */

uint64_t now_us(void);
/* The loop without signals and its end: main() and fuzz/ drive it. */
void loop_init(void);
bool loop_round(uint64_t now_ms);
_Noreturn void die(const char *what);

#endif
