/*
 * Connections of programs inside, carried to and from the controller; egress/ and ports/ open them.
 */
#ifndef SBXD_CONNECTIONS_H
#define SBXD_CONNECTIONS_H

#include "../wire/wire.h"

/* ---- for the loop ---------------------------------------------------------------------------- */

/* Moves bytes of connections to the wire, fairly, as room and credit allow. */
void connections_pump(void);
/* Milliseconds until there is more to pump; -1 when an event will wake the loop for it. */
int connections_wait(void);
void connection_data(const struct frame *f);
void connection_credit(const struct frame *f);
void connection_eof(const struct frame *f);
void connection_closed(const struct frame *f);

/* ---- for the folders above ------------------------------------------------------------------- */

/* Bit of the channels that we open. */
#define OUR_CHANNEL 0x80000000u
/* Bytes from the controller that may be queued for the program */
#define INWARD_WINDOW (128u << 10)
/* Above it we add nothing to the wire, so that commands' output is sent as well */
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
    bool write_end, shut;         /* the controller's end of data has arrived; it was passed on */
    uint64_t sent, limit;         /* to the controller */
    uint64_t received, credited;  /* from the controller */
    struct buf waiting;           /* bytes not taken by the program, from waiting_at on */
    size_t waiting_at;
    uint64_t until_ms;
    /* While it is connecting: receives its events. */
    void (*connecting)(struct connection *c, uint32_t events);
    uint16_t port; /* … to which it connects */
};

/* Numbers of those with a channel, and of those that only linger. */
extern size_t connections_ours, connections_theirs, connections_lingering;

/*
 * Takes over the descriptor, or closes it and returns NULL. Channel 0: its bytes are discarded
 * until `until_ms`.
 */
struct connection *connection_add(int fd, uint32_t channel, uint64_t until_ms);
/* NULL when there is none any more. */
struct connection *connection_of(uint32_t channel);
/* `reset`: the program must not mistake its bytes for complete. */
void connection_close(struct connection *c, bool reset);
/* Closes all of them; `notify`: sends CONNECTION_CLOSE for each. */
void connections_end(bool notify);
/* Closes those that have lingered long enough. */
void connections_linger(uint64_t now_ms);

#endif
