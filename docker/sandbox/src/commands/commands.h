/* Commands: the state of one from START until its EXIT is acknowledged, and its parts. */
#ifndef SBXD_COMMANDS_H
#define SBXD_COMMANDS_H

#include "../sessions/sessions.h"
#include "../wire/wire.h"

#define MAX_RUNNING 128
#define WINDOW_MIN (256u << 10)   /* … and when RING_BUDGET is exhausted */
#define RING_BUDGET (32u << 20)
#define STDIN_WINDOW (256u << 10)
/* Must stay below WINDOW_MIN: these bytes are stored until the file exists */
#define SPOOL_AFTER_MAX (128u << 10)
#define START_MAX (1u << 20)
#define DRAIN_MS 200
#define SHIM_TIMEOUT_MS 2000
#define SWEEP_MS 5
#define GATHER_US 500        /* delay of small pieces of output … */
#define GATHER_BYTES 16384   /* … or until so many bytes */

/* ---- for the loop, and for main.c ------------------------------------------------------------ */

/* A new controller: discards an incomplete request. */
void start_forget_pieces(void);
void commands_start(const struct frame *f);
void commands_attach(const struct frame *f);
void commands_data(const struct frame *f);
void commands_eof(const struct frame *f);
void commands_credit(const struct frame *f);
void commands_ack(const struct frame *f);
void commands_signal(const struct frame *f);
void commands_cancel(const struct frame *f);
void commands_resize(const struct frame *f);
void commands_reset(const struct frame *f);
void commands_list(const struct frame *f);
void reset_forget_requests(void);
void commands_describe(struct buf *b);
/* A new controller: detaches everything. */
void commands_detach_all(void);
/* Reaps dead children; any adopted one is an orphan to sweep. */
void commands_reap(void);
/* Milliseconds until a timer is due, or -1. */
int commands_timers(uint64_t now_ms);
/* True when output can be sent; the next function returns its next piece, fairly. */
bool commands_have_data(void);
bool commands_next_data(struct data_frame *out);
/*
 * Ends the commands of these pids, which wrote while growth is forbidden. If none matches, ends all
 * commands, unless `only_these`: then another sandbox may have written.
 */
void commands_end_writers(const pid_t *pids, size_t n, bool only_these);
/* Finishes every command with nothing pending. */
void commands_finish_done(void);
/* Called once per round, after the wire was pumped. */
void commands_hash(void);
void commands_free_dead(void);

/* ---- flood.c: batches when much is written --------------------------------------------------- */

/* Counts bytes read from a command. */
void flood_count(size_t bytes);
/* Called before each wait of the loop; sleeps briefly during a flood. */
void flood_pause(void);

/* ---- oom.c: the cgroup's count of kernel OOM kills ------------------------------------------- */

void oom_open(void);
/* While we are dumpable: opens our own OOM score. */
void oom_score_open(void);
/* While on, a forked process has a higher OOM score than sbxd and is killed first. */
void oom_raise_score(bool on);
/* Kernel OOM kills so far in this cgroup, 0 where it cannot be read. */
uint64_t oom_kills(void);

/* ---- ring.c: bytes of one stream, addressed by their offset ---------------------------------- */

struct ring {
    uint8_t *p;
    size_t cap;         /* power of two, 0 before the first byte */
    uint64_t base, end; /* offsets of the first kept byte and of the next one */
};
/* Bytes that fit into the window now. */
size_t ring_space(const struct ring *r);
/*
 * Makes room for at least one more byte; returns at most two pieces (count in the result, 0 = no
 * room).
 */
int ring_room(struct ring *r, struct iovec out[2]);
int ring_slice(const struct ring *r, uint64_t from, size_t n, struct iovec out[2]);
void ring_drop(struct ring *r, uint64_t upto);
void ring_free(struct ring *r);

/* ---- shim.c: the small process between sbxd and one command ---------------------------------- */

/* Resources that a START may limit, in the order of the protocol. */
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
    bool terminal; /* in, out and err are the same, and the controlling terminal */
    int memory;    /* passed on to the command, or -1 */
    bool cwd_may_fail; /* falls back to the workspace, reported by STARTED */
    bool capped; /* may not make a file grow */
    bool may_trace;
};

enum shim_event { SHIM_STARTED = 1, SHIM_FAILED = 2, SHIM_EXITED = 3, SHIM_GONE = 4 };
/*
 * Minor and major page faults, blocks of 512 bytes read and written, voluntary and involuntary
 * switches.
 */
#define USAGE_COUNT 6
struct shim_report {
    uint32_t event;
    int32_t value; /* STARTED: pid. FAILED: errno. EXITED: wait status */
    /*
     * STARTED: 1 for the workspace instead of cwd. FAILED: stage. EXITED: 1 when descendants are
     * left
     */
    int32_t stage;
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

/* ---- one command ----------------------------------------------------------------------------- */

struct stream {
    struct source src;
    int fd;            /* -1 once at its end */
    bool polled;
    struct ring ring;
    struct ring tail;   /* the last bytes of a cut output */
    uint64_t total;     /* bytes produced */
    uint64_t rest;      /* after the last process: bytes left in the pipe then */
    /*
     * Hash of all bytes but the last in the ring; the thread's while it is hashing
     * (commands/hash.c)
     */
    struct sha256 hash;
    bool hashing;
    uint64_t hashed; /* while it is hashing: bytes hashed before it began */
    uint64_t sent;     /* next offset to send on the current channel */
    uint64_t sent_us;  /* when something was sent last */
    uint64_t limit;    /* the controller's credit: send below this offset */
    uint64_t acked;
};

/* Head and tail of one stream together; they must fit into the smallest window. */
#define CUT_MAX WINDOW_MIN

enum policy_kind { POLICY_STREAM, POLICY_CUT, POLICY_LIMIT };
struct policy {
    enum policy_kind kind;
    uint32_t head, tail; /* CUT: bytes stored of each stream */
    uint64_t limit;      /* LIMIT: bytes of both streams together */
};

enum state {
    RUNNING,
    DRAINING, /* the main process has ended, descendants may still write for DRAIN_MS */
    KILLING,  /* the shim was ordered to kill everything */
    GONE,     /* no process is left; the pipes are still read */
    ENDED,    /* EXIT is final; stored until acknowledged */
};

struct spool {
    bool wanted;
    uint64_t after, max;
    uint64_t seen, accepted; /* bytes produced, and those for the file */
    struct buf held;         /* the first bytes, until a file is needed or not */
    struct spool_file *file;
    uint64_t written; /* set at the end */
};

struct command {
    struct command *next;
    uint8_t id[ID_BYTES];
    uint32_t asked; /* as in struct request */
    enum state state;
    bool started; /* STARTED was reported; no other frame precedes it */
    bool dead; /* freed at the end of the loop round, events may still point here */

    bool attached;
    uint32_t channel;

    pid_t shim;
    pid_t main;
    struct source ctl_src;
    int ctl;

    struct stream out[2];
    struct {
        struct source src;
        int fd; /* -1: closed or never opened */
        bool polled, eof;
        uint64_t credited; /* the limit last sent to the controller */
        struct ring ring;
    } in;

    struct policy policy;
    struct spool spool;
    /* In a terminal: the command's side of it, until the main process has ended; else -1 */
    int slave;
    bool terminal, background;
    struct session_use session;

    uint64_t started_us, ended_us;
    uint64_t timeout_ms, kill_ms; /* absolute, 0 = not set */
    uint64_t drain_ms, shim_timeout_ms;
    uint32_t grace_ms;
    uint8_t cause; /* decided before the end: timeout, cancel, shim_killed */
    bool main_ended;
    bool orphaned; /* its shim died without a report: its processes are being swept */
    int status;
    uint64_t ooms; /* OOM kills in the sandbox before it began; after its end, while it ran */
    /* If it was stopped: its processes, and the time until the last one ended. Else 0 */
    uint64_t stopped_us;
    uint32_t stopped;
    bool capped; /* it began while growth is forbidden: its files may have no size */
    uint64_t user_us, system_us, max_rss_kb;
    uint64_t usage[USAGE_COUNT];
};

extern struct command *commands;
/* A shim was killed or a reset runs: adopted children have to be killed first. */
extern bool sweeping;

/* commands.c */
struct command *command_by_id(const uint8_t *id);
struct command *command_by_channel(uint32_t channel);
size_t command_count(bool running_only);
/* Closes it. The struct is freed once no event and no unreaped shim can refer to it. */
void command_forget(struct command *c);
/*
 * Makes room: forgets the command that ended first, if it has been unacknowledged longer than the
 * lease.
 */
void command_forget_abandoned(void);
/* Bytes of this one were sent: the others have priority next time. */
void command_sent(struct command *c);

/* attach.c */
void command_attach(struct command *c, uint32_t channel, const uint64_t from[2], const uint64_t limit[2]);
/* The payload of STARTED. */
#define STARTED_BYTES 37
void command_write_started(struct command *c, bool existing, struct buf *b);
void command_send_started(struct command *c, bool existing);
/* A second START or an ATTACH: answers with STARTED and, after its end, EXIT. */
void command_reattach(struct command *c, uint32_t channel, const uint64_t from[2], const uint64_t limit[2]);

/* end.c */
void command_order(struct command *c, uint32_t order, int signal, int scope);
void command_begin_end(struct command *c, uint8_t cause, uint32_t grace_ms);
void command_kill(struct command *c);
/*
 * Once its last process has ended, its output is read and the disk is counted: settles and sends
 * its EXIT.
 */
void command_finish_if_done(struct command *c);

/* For its sources: the control socket, its output, and its stdin. */
void command_ctl_ready(struct source *src, uint32_t events);
void command_out_ready(struct source *src, uint32_t events);
void command_in_ready(struct source *src, uint32_t events);

/* exit.c */
/* Settles the cause of its end; no more output follows. */
void exit_decide(struct command *c);
/* Payload of EXIT with every fact, at most EXIT_MOST bytes. */
#define EXIT_MOST 240
void exit_write(const struct command *c, struct buf *b);
/* Sends it to the attached controller. Idempotent. */
void exit_send(const struct command *c);

/* remembered.c: results of acknowledged commands */
/* Enough for the commands of a store's last, lost minutes. */
#define REMEMBERED 4096
/* Before the command is forgotten. */
void command_remember(struct command *c);
/*
 * Answers with STARTED and EXIT for a remembered id with the same request; NULL as `asked` matches
 * any. Returns true if there was one.
 */
bool remembered_answer(uint32_t channel, const uint8_t *id, const uint32_t *asked);
/* For fuzz/: forgets all. */
void remembered_forget(void);

/* start.c */
void send_start_failed(uint32_t channel, int error, int stage);

/* sweep.c */
/* Responsive shims: `*n` of them, to be freed; NULL when out of memory. */
pid_t *command_shims(size_t *n);
bool reset_running(void);
/* One round of killing orphans, or of a reset; returns false when it is finished. */
bool sweep_round(void);

/* terminal.c */
/* Opens both ends of a new terminal; ours does not block. */
bool terminal_open(uint16_t rows, uint16_t columns, int *master, int *slave);
/* Ends the input. Returns false when the terminal takes nothing now. */
bool terminal_end_input(struct command *c);
void terminal_hang_up(struct command *c);

/* spool.c */
void spool_add(struct command *c, const uint8_t *p, size_t n);
/* Returns true when so much is queued for the disk that reading must pause. */
bool spool_is_full(const struct command *c);
/* After the last byte; returns true when the file is complete. */
bool spool_finished(struct command *c);
void spool_forget(struct command *c);

/* streams.c */
void command_close(struct command *c);
void stream_drain(struct command *c, struct stream *s);
/* No process of the command is left: reads the rest, then this stream is at its end. */
void stream_last(struct command *c, struct stream *s);
void stream_resume(struct command *c, struct stream *s);
bool stream_is_batching(const struct command *c, const struct stream *s);
void stdin_writable(struct command *c);

/* ---- output.c, hash.c: what becomes of a command's output on its way out --------------------- */

/* Buffers for bytes from the pipe: 0 when there is no room now, else the number of pieces. */
int output_room(struct command *c, struct stream *s, struct iovec v[2]);
/* Shortens these pieces to `most` bytes together; returns the number of pieces left. */
int output_shorten(struct iovec v[2], int n, uint64_t most);
/* After so many bytes were read into these pieces. */
void output_commit(struct command *c, struct stream *s, const struct iovec v[2], size_t n);
/* The ring with the next bytes to send, which end before `upto`; NULL when nothing may be sent. */
const struct ring *output_next(struct command *c, struct stream *s, uint64_t *upto);
/* Gap of a cut stream: its first byte, and the first one after it. */
bool output_gap(const struct command *c, const struct stream *s, uint64_t *from, uint64_t *to);
/* Once per loop round, after sending. */
void hash_pending(struct stream *s);
/* Returns when everything in the ring is hashed and the thread has released the stream … */
void hash_all(struct stream *s);
/* … or everything below this offset is hashed. */
void hash_until(struct stream *s, uint64_t offset);
/* Frees acknowledged bytes. */
void output_drop(const struct command *c, struct stream *s);

/* ---- request.c, options.c: what a START asked for -------------------------------------------- */

struct request {
    const uint8_t *id;
    /*
     * Checksum of its directory and its words. A controller that has lost its records may reuse an
     * id for another command, which must not be answered with the end of this one.
     */
    uint32_t asked;
    uint16_t flags;
    uint64_t limit[2];
    char *cwd;
    char **argv;
    char **envp;
    char *text; /* the bytes that all of these point into */

    uint32_t timeout_ms, grace_ms;
    bool spooled;
    uint32_t spool_after, spool_max;
    struct policy policy;
    struct limits limits;
    bool terminal, background, may_trace;
    uint16_t rows, columns;
    uint64_t max_age_ms; /* of a background job */
    char session[SESSION_NAME_MAX + 1]; /* "" when it has none */
    char home[SESSION_CWD_MAX]; /* initial directory of a new session; "": the workspace */
    /* The session's directory: if it is missing, the workspace is used */
    bool cwd_may_fail;
    char **given;                       /* the request's own assignments, ended by NULL */
    char *session_text;                 /* what some entries of envp point into */
};

/* request.c: fills the zeroed `q` from a whole request. 0, or the errno of the refusal. */
int request_read(struct request *q, const uint8_t *p, size_t n);
/* Also after a refusal. */
void request_forget(struct request *q);

/*
 * options.c: reads one option of a START into `q`. Each tag is allowed once, unless OPT_REPEATS.
 * Returns 0, or the errno of the refusal: EINVAL for an unknown tag or an invalid value.
 */
int start_option(struct request *q, uint8_t tag, struct reader *value);

int terminal_option(struct request *q, struct reader *r);   /* terminal.c */
int background_option(struct request *q, struct reader *r); /* jobs.c */
bool jobs_full(void);
void job_begin(struct command *c, const struct request *q);
int session_option(struct request *q, struct reader *r); /* session_start.c */
int home_option(struct request *q, struct reader *r);
/* Before the shim is forked. 0, or the errno of the refusal. */
int session_begin(struct command *c, struct request *q);

#endif
