/* The connections of programs inside, carried to the controller. */
#ifndef SBXD_EGRESS_H
#define SBXD_EGRESS_H

#include "../wire/wire.h"

/* ---- for the loop ------------------------------------------------------------------------------------------------- */

/* Bytes of connections to the wire, fairly, as far as there is room and credit. */
void egress_pump(void);
/* Milliseconds until there is more to pump; -1 when something else will wake us for it. */
int egress_wait(void);
/* Once a round, after the wire was pumped: whether new connections are to wake us. */
void egress_poll(uint64_t now_ms);
void egress_timers(uint64_t now_ms);
/* A new controller: connections belong to the last one and end; the listener stays for a while. */
void egress_forget(void);
void egress_listen(const struct frame *f);
void egress_result(const struct frame *f);
void egress_data(const struct frame *f);
void egress_credit(const struct frame *f);
void egress_eof(const struct frame *f);
void egress_close(const struct frame *f);

/* ---- for the files of this folder --------------------------------------------------------------------------------- */

#define OUR_CHANNEL 0x80000000u
#define INWARD_WINDOW (128u << 10) /* bytes from the controller that may wait for the program to read them */
#define QUEUE_ROOM (32u << 10)     /* above it we add nothing to the wire, so that commands' output gets its turn */

struct connection {
    struct source src;
    struct connection *next;
    uint32_t channel; /* 0: refused for want of room, it only lingers so that its answer can be read */
    int fd;
    bool dead; /* freed at the end of the loop round, events may still point here */
    bool readable, writable;
    bool small;                   /* the last piece from the program was: connections.c says what follows */
    bool read_end;                /* the program has said all, and so did we */
    bool write_end, shut;         /* the controller has said all; the program was told */
    uint64_t sent, limit;         /* towards the controller */
    uint64_t received, credited;  /* from the controller */
    struct buf waiting;           /* what the program has not taken yet, from waiting_at on */
    size_t waiting_at;
    uint64_t until_ms;
};

/* connections.c */

/* How many have a channel, and how many only linger. */
extern size_t connections_open, connections_lingering;

/* Takes the descriptor over, or closes it and returns NULL. Channel 0: what it says is thrown away until `until_ms`. */
struct connection *connection_add(int fd, uint32_t channel, uint64_t until_ms);
/* All of them end; where `tell`, the controller hears of each. */
void connections_end(bool tell);
/* Those that have lingered long enough go. */
void connections_linger(uint64_t now_ms);

#endif
