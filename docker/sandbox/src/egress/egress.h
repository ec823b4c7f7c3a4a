/* The connections of programs inside, carried to the controller. */
#ifndef SBXD_EGRESS_H
#define SBXD_EGRESS_H

#include "../wire/wire.h"

/* ---- for the loop ---------------------------------------------------------------------------- */

/* Bytes of connections to the wire, fairly, as far as there is room and credit. */
void egress_pump(void);
/* Milliseconds until there is more to pump; -1 when an event will wake the loop for it. */
int egress_wait(void);
/* Once a round, after the wire was pumped: polls the listener if a connection could be accepted. */
void egress_poll_listener(uint64_t now_ms);
void egress_timers(uint64_t now_ms);
/* A new controller: all connections end; the listener stays for a while. */
void egress_forget(void);
void egress_listen(const struct frame *f);
void egress_result(const struct frame *f);
void egress_data(const struct frame *f);
void egress_credit(const struct frame *f);
void egress_eof(const struct frame *f);
void egress_close(const struct frame *f);

/* ---- for the files of this folder ------------------------------------------------------------ */

#define OUR_CHANNEL 0x80000000u
/* Bytes from the controller that may wait for the program to read them */
#define INWARD_WINDOW (128u << 10)
/* Above it we add nothing to the wire, so that commands' output gets its turn */
#define QUEUE_ROOM (32u << 10)

struct connection {
    struct source src;
    struct connection *next;
    uint32_t channel; /* 0: refused, it only lingers so that the program can read the answer */
    int fd;
    bool dead; /* freed at the end of the loop round, events may still point here */
    bool readable, writable;
    bool small;                   /* the last piece from the program was small */
    bool read_end;                /* the program's end of data was sent to the controller */
    bool write_end, shut;         /* the controller's end of data has come; it was passed on */
    uint64_t sent, limit;         /* towards the controller */
    uint64_t received, credited;  /* from the controller */
    struct buf waiting;           /* what the program has not taken yet, from waiting_at on */
    size_t waiting_at;
    uint64_t until_ms;
};

/* connections.c */

/* How many have a channel, and how many only linger. */
extern size_t connections_open, connections_lingering;

/*
 * Takes over the descriptor, or closes it and returns NULL. Channel 0: its bytes are discarded
 * until `until_ms`.
 */
struct connection *connection_add(int fd, uint32_t channel, uint64_t until_ms);
/* Closes all of them; `notify`: sends EGRESS_CLOSE for each. */
void connections_end(bool notify);
/* Closes those that have lingered long enough. */
void connections_linger(uint64_t now_ms);

#endif
