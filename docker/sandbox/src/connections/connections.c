/*
 * Bytes of connections between programs inside and the wire, with credit both ways, whichever side
 * opened them.
 */
#include "connections.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE (32u << 10) /* bytes of one CONNECTION_DATA */
#define SMALL (4u << 10)  /* … and a smaller one is small */
#define SMALL_A_MS 4      /* of all connections together */

static struct connection *connections;
size_t connections_ours, connections_theirs, connections_lingering;

/* ---- one connection -------------------------------------------------------------------------- */

static size_t *count_with(uint32_t channel)
{
    return !channel ? &connections_lingering : channel & OUR_CHANNEL ? &connections_ours : &connections_theirs;
}

void connection_close(struct connection *c, bool reset)
{
    if (c->dead)
        return;
    /* A truncated transfer must not look complete. */
    struct linger at_once = {1, 0};
    if (reset)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    poll_remove(c->fd);
    close(c->fd);
    free(c->waiting.p);
    c->waiting = (struct buf){0};
    c->dead = true;
    (*count_with(c->channel))--;
}

/* It failed on this side: the controller is informed. */
static void fail_connection(struct connection *c)
{
    if (c->dead)
        return;
    if (c->channel)
        frame_out(T_CONNECTION_CLOSE, 0, c->channel, NULL, 0);
    connection_close(c, true);
}

struct connection *connection_of(uint32_t channel)
{
    struct connection *c = connections;
    while (c && (c->dead || c->channel != channel))
        c = c->next;
    return channel ? c : NULL;
}

static void credit(struct connection *c)
{
    uint64_t limit = c->received - (c->waiting.len - c->waiting_at) + INWARD_WINDOW;
    if (c->write_end || limit - c->credited < INWARD_WINDOW / 2)
        return;
    c->credited = limit;
    uint8_t p[8];
    put64(p, limit);
    frame_out(T_CONNECTION_CREDIT, 0, c->channel, p, sizeof p);
}

/* Writes queued bytes, as far as the program takes them; then the end, if any. */
static void flush(struct connection *c)
{
    while (c->writable && c->waiting_at < c->waiting.len) {
        ssize_t w = send(c->fd, c->waiting.p + c->waiting_at, c->waiting.len - c->waiting_at, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && errno == EAGAIN) {
            c->writable = false;
            break;
        }
        if (w < 0) {
            fail_connection(c);
            return;
        }
        c->waiting_at += (size_t)w;
    }
    if (c->waiting_at == c->waiting.len) {
        c->waiting_at = c->waiting.len = 0;
        if (c->write_end && !c->shut) {
            shutdown(c->fd, SHUT_WR);
            c->shut = true;
        }
    }
    credit(c);
    if (c->read_end && c->shut)
        connection_close(c, false);
}

/* Small pieces in this millisecond. */
static uint64_t small_ms;
static unsigned small_pieces;

/* One piece from the program to the wire. */
static void read_piece(struct connection *c, uint64_t now_ms)
{
    static uint8_t piece[8 + PIECE];
    uint64_t left = c->limit - c->sent;
    ssize_t r = recv(c->fd, piece + 8, left < PIECE ? (size_t)left : PIECE, 0);
    if (r < 0 && errno == EINTR)
        return;
    if (r < 0 && errno == EAGAIN) {
        c->readable = false;
        return;
    }
    if (r < 0) {
        fail_connection(c);
        return;
    }
    put64(piece, c->sent);
    c->small = r > 0 && r < SMALL;
    small_pieces = (small_ms == now_ms ? small_pieces : 0) + c->small;
    small_ms = now_ms;
    if (r > 0) {
        frame_out(T_CONNECTION_DATA, 0, c->channel, piece, 8 + (size_t)r);
        c->sent += (uint64_t)r;
        return;
    }
    frame_out(T_CONNECTION_EOF, 0, c->channel, piece, 8);
    c->read_end = true;
    if (c->shut)
        connection_close(c, false);
}

/*
 * A refused connection: its bytes are discarded, because closing with unread bytes would discard
 * the answer.
 */
static void drain_refused(struct connection *c, uint64_t now_ms)
{
    static uint8_t waste[4096];
    ssize_t r = 1;
    for (int i = 0; c->readable && i < 16 && r > 0; i++)
        r = recv(c->fd, waste, sizeof waste, 0);
    bool empty = r < 0 && errno == EAGAIN;
    if (empty)
        c->readable = false;
    if (r == 0 || (r < 0 && !empty) || c->until_ms <= now_ms)
        connection_close(c, false);
}

static bool has_data(const struct connection *c)
{
    return !c->dead && c->channel && !c->connecting && c->readable && !c->read_end && c->sent < c->limit;
}

/*
 * A program can write single bytes at full speed in hundreds of connections, and each would cost a
 * frame on the whole path. After many small pieces in a millisecond, a connection whose last piece
 * was small waits for the next one, and the kernel collects its bytes. The first piece of a
 * connection and large ones never wait.
 */
static bool is_throttled(const struct connection *c, uint64_t now_ms)
{
    return c->small && small_ms == now_ms && small_pieces >= SMALL_A_MS;
}

int connections_wait(void)
{
    uint64_t now_ms = now_us() / 1000;
    int wait = -1;
    if (wire_queued() >= QUEUE_ROOM)
        return wait; /* the wire wakes us when it has room */
    for (struct connection *c = connections; c && wait != 0; c = c->next)
        if (has_data(c))
            wait = is_throttled(c, now_ms) ? 1 : 0;
    return wait;
}

static void free_closed(void)
{
    for (struct connection **at = &connections; *at;) {
        struct connection *c = *at;
        if (!c->dead) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        free(c);
    }
}

void connections_pump(void)
{
    struct connection *served = NULL, **served_end = &served, **at = &connections;
    uint64_t now_ms = now_us() / 1000;
    free_closed();
    while (*at) {
        struct connection *c = *at;
        if (!has_data(c) || is_throttled(c, now_ms) || wire_queued() >= QUEUE_ROOM) {
            at = &c->next;
            continue;
        }
        read_piece(c, now_ms);
        *at = c->next;
        c->next = NULL;
        *served_end = c;
        served_end = &c->next;
    }
    /* Served connections move to the end, for fairness. */
    *at = served;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void connection_ready(struct source *src, uint32_t events)
{
    struct connection *c = src->owner;
    if (c->dead)
        return;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
        c->readable = true;
    if (events & EPOLLOUT)
        c->writable = true;
    if (c->connecting)
        c->connecting(c, events);
    else if (!c->channel)
        drain_refused(c, now_us() / 1000);
    else if (events & EPOLLERR)
        fail_connection(c);
    else if (c->writable)
        flush(c);
}

struct connection *connection_add(int fd, uint32_t channel, uint64_t until_ms)
{
    struct connection *c = calloc(1, sizeof *c);
    if (c)
        c->src = (struct source){.ready = connection_ready, .owner = c};
    if (!c || !poll_add(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &c->src)) {
        free(c);
        close(fd);
        return NULL;
    }
    c->fd = fd;
    c->channel = channel;
    c->until_ms = until_ms;
    c->credited = INWARD_WINDOW;
    c->next = connections;
    connections = c;
    (*count_with(channel))++;
    return c;
}

void connections_end(bool notify)
{
    for (struct connection *c = connections; c; c = c->next)
        if (notify)
            fail_connection(c);
        else
            connection_close(c, true);
}

void connections_linger(uint64_t now_ms)
{
    for (struct connection *c = connections; connections_lingering && c; c = c->next)
        if (!c->dead && !c->channel && c->until_ms <= now_ms)
            connection_close(c, false);
}

/* ---- from the controller --------------------------------------------------------------------- */

void connection_credit(const struct frame *f)
{
    struct connection *c = connection_of(f->channel);
    struct reader r = frame_reader(f);
    uint64_t limit = rd64(&r);
    if (c && !r.bad && limit > c->limit)
        c->limit = limit;
}

void connection_data(const struct frame *f)
{
    struct connection *c = connection_of(f->channel);
    struct reader r = frame_reader(f);
    uint64_t offset = rd64(&r);
    if (!c || r.bad)
        return;
    if (c->connecting || c->write_end || offset != c->received || r.left > c->credited - c->received) {
        fail_connection(c); /* a controller that counts never gets here */
        return;
    }
    c->received += r.left;
    if (c->waiting_at > c->waiting.len / 2) {
        c->waiting.len -= c->waiting_at;
        memmove(c->waiting.p, c->waiting.p + c->waiting_at, c->waiting.len);
        c->waiting_at = 0;
    }
    buf_bytes(&c->waiting, r.p, r.left);
    flush(c);
}

void connection_eof(const struct frame *f)
{
    struct connection *c = connection_of(f->channel);
    struct reader r = frame_reader(f);
    uint64_t total = rd64(&r);
    if (!c || r.bad)
        return;
    if (c->connecting || total != c->received) {
        fail_connection(c);
        return;
    }
    c->write_end = true;
    flush(c);
}

void connection_closed(const struct frame *f)
{
    struct connection *c = connection_of(f->channel);
    if (c)
        connection_close(c, true);
}
