/* One command and what is kept of it: shared by the files that start it, move its bytes and end it. */
#ifndef SBXD_COMMAND_H
#define SBXD_COMMAND_H

#include "output.h"
#include "../sbxd.h"
#include "../sessions/sessions.h"

enum state {
    RUNNING,
    DRAINING, /* the main process has ended, descendants may still write for DRAIN_MS */
    KILLING,  /* the shim was told to kill everything */
    GONE,     /* no process is left; what is in the pipes is still read */
    ENDED,    /* EXIT is known; kept until acknowledged */
};

struct spool {
    bool wanted;
    uint64_t after, max;
    uint64_t seen, accepted; /* bytes produced, and those of them that go to the file */
    struct buf held;         /* the first bytes, until it is known whether there will be a file */
    struct spool_file *file;
    uint64_t written; /* known at the end */
};

struct command {
    struct command *next;
    uint8_t id[ID_BYTES];
    enum state state;
    bool started; /* STARTED was reported; until then nothing else is */
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
        uint64_t credited; /* what the controller was told it may send up to */
        struct ring ring;
    } in;

    struct policy policy;
    struct spool spool;
    int slave; /* in a terminal: the command's side of it, until the main process has ended; else -1 */
    bool terminal, background;
    struct session_use session;

    uint64_t started_us, ended_us;
    uint64_t timeout_ms, kill_ms; /* absolute, 0 = not set */
    uint64_t drain_ms, patience_ms;
    uint32_t grace_ms;
    uint8_t cause; /* decided before the end: timeout, cancel, shim_killed */
    bool main_ended;
    bool orphaned; /* its shim died without a last word: what it guarded is being swept */
    int status;
    uint64_t ooms;
    bool capped; /* it began while nothing may grow: its files may have no size */
    uint64_t user_us, system_us, max_rss_kb;
    uint64_t usage[USAGE_COUNT];
};

extern struct command *commands;
/* A shim was killed or a reset runs: children that we adopted have to go first. */
extern bool sweeping;

/* commands.c */
struct command *command_by_id(const uint8_t *id);
struct command *command_by_channel(uint32_t channel);
size_t command_count(bool running_only);
/* Nothing of it will be asked for again. The struct stays until no event and no dead child can point here. */
void command_forget(struct command *c);
/* Make room: forget the command whose end has waited longest, and longer than the lease, for its acknowledgement. */
void command_forget_abandoned(void);

/* attach.c */
void command_attach(struct command *c, uint32_t channel, const uint64_t from[2], const uint64_t limit[2]);
void command_started(struct command *c, bool existing);
/* A second START or an ATTACH: answers with STARTED and, when it is over, EXIT. */
void command_reattach(struct command *c, uint32_t channel, const uint64_t from[2], const uint64_t limit[2]);

/* end.c */
void command_order(struct command *c, uint32_t order, int signal, int scope);
void command_begin_end(struct command *c, uint8_t cause, uint32_t grace_ms);
void command_kill(struct command *c);
/* Once no process of it is left, everything is read and what it did to the disk is counted: its end is known and told. */
void command_maybe_finish(struct command *c);

/* exit.c */
/* Settle what ended it; no more is to come. */
void exit_decide(struct command *c);
/* To whoever is attached; any number of times. */
void exit_send(const struct command *c);

/* start.c */
void start_failed(uint32_t channel, int error, int stage);

/* sweep.c */
/* Shims that do their work: `*n` of them, to be freed; NULL when memory is gone. */
pid_t *command_shims(size_t *n);
bool reset_running(void);
/* One round against escapees or for a reset; returns false when nothing is left to do. */
bool sweep_round(void);

/* terminal.c */
/* Both ends of a new terminal; ours does not block. */
bool terminal_open(uint16_t rows, uint16_t columns, int *master, int *slave);
/* The input is over. Returns false when the terminal takes nothing just now. */
bool terminal_end_input(struct command *c);
void terminal_hang_up(struct command *c);

/* spool.c */
void spool_add(struct command *c, const uint8_t *p, size_t n);
/* So much waits for the disk that no more should be read. */
bool spool_behind(const struct command *c);
/* Nothing more comes; returns whether the file is whole. */
bool spool_finished(struct command *c);
void spool_forget(struct command *c);

/* streams.c */
void command_close(struct command *c);
bool poll_add(int fd, uint32_t events, struct source *src);
void poll_close(int *fd);
void stream_drain(struct command *c, struct stream *s);
/* No process of the command is left: read what there still is, then this stream is at its end. */
void stream_last(struct command *c, struct stream *s);
void stream_resume(struct command *c, struct stream *s);
bool stream_rests(const struct command *c, const struct stream *s);
void stdin_writable(struct command *c);

#endif
