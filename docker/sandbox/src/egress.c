/*
 * Egress: a listener on 127.0.0.1 whose connections are channels of the stream. Only bytes pass through here: the
 * controller parses them, decides and dials. Channel numbers of connections are ours and have the highest bit set.
 */
#include "sbxd.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUR_CHANNEL 0x80000000u
#define PIECE (32u << 10)          /* bytes of one EGRESS_DATA */
#define INWARD_WINDOW (128u << 10) /* bytes from the controller that may wait for the program to read them */
#define QUEUE_ROOM (32u << 10)     /* above it we add nothing to the wire, so that commands' output gets its turn */
#define MOST_LINGERING 64
#define LINGER_MS 2000
#define NO_DESCRIPTORS_MS 100
#define TELL_MS 1000   /* how often we tell of connections that we refused */
#define LISTEN_MS 2000 /* a new controller that does not say LISTEN by then wants no egress */

struct connection {
    struct source src; /* first: events point here */
    struct connection *next;
    uint32_t channel; /* 0: refused for want of room, it only lingers so that its answer can be read */
    int fd;
    bool dead; /* freed at the end of the loop round, events may still point here */
    bool readable, writable;
    bool read_end;                /* the program has said all, and so did we */
    bool write_end, shut;         /* the controller has said all; the program was told */
    uint64_t sent, limit;         /* towards the controller */
    uint64_t received, credited;  /* from the controller */
    struct buf waiting;           /* what the program has not taken yet, from waiting_at on */
    size_t waiting_at;
    uint64_t until_ms;
};

static struct source listener_src = {SRC_EGRESS_LISTENER, NULL, 0};
static int listener = -1;
static uint16_t listener_port;
static bool listener_polled;
static bool listening; /* a controller has said LISTEN since its WELCOME */
static bool silent;    /* … but has not been heard of for so long that it is taken for gone */
static uint64_t listen_by_ms;
static uint64_t accept_at_ms; /* not before: we were out of descriptors */
static uint32_t turned_away;  /* since the controller was last told */
static uint64_t silence_ms;
static struct connection *connections;
static size_t open_count, lingering, most;
static uint32_t last_channel;

#define TOO_MANY_TEXT "Sandlot: this sandbox has too many connections open; close some and try again\n"
static const char TOO_MANY[] = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 78\r\n"
                               "Retry-After: 1\r\nX-Sandlot-Refused: too_many_connections\r\nConnection: close\r\n\r\n" TOO_MANY_TEXT;
_Static_assert(sizeof TOO_MANY_TEXT - 1 == 78, "the length in the head");

/* ---- the listener ------------------------------------------------------------------------------------------ */

/* Whether another connection could be taken. A controller that does not read gets none: OPENs would pile up for it. */
static bool accepting(void)
{
    return listening && !silent && (open_count < most || lingering < MOST_LINGERING) && wire_queued() < QUEUE_ROOM;
}

static void poll_listener(bool on)
{
    if (listener < 0 || on == listener_polled)
        return;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &listener_src};
    if (epoll_ctl(epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener, &e) == 0)
        listener_polled = on;
}

void egress_poll(uint64_t now_ms) { poll_listener(accepting() && accept_at_ms <= now_ms); }

static void close_listener(void)
{
    poll_listener(false);
    if (listener >= 0)
        close(listener);
    listener = -1;
}

/* In place of the one that there is, which stays when this fails: commands know its port. */
static int open_listener(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 512) < 0 || getsockname(fd, (struct sockaddr *)&at, &length) < 0) {
        int error = errno;
        close(fd);
        return error;
    }
    close_listener();
    listener = fd;
    listener_port = ntohs(at.sin_port);
    return 0;
}

void egress_listen(uint32_t channel, const uint8_t *p, size_t n)
{
    struct reader r = {p, n, false};
    uint16_t port = rd16(&r), limit = rd16(&r);
    uint32_t silence = rd32(&r);
    int error = r.bad ? EINVAL : 0;
    if (!error && (listener < 0 || (port && port != listener_port)))
        error = open_listener(port);
    if (!error) {
        most = limit;
        silence_ms = silence;
        listening = true;
        silent = false;
    }
    uint8_t answer[6];
    put32(answer, (uint32_t)error);
    put16(answer + 4, error ? 0 : listener_port);
    frame_out(T_EGRESS_RESULT, 0, channel, answer, sizeof answer);
}

/* ---- one connection ---------------------------------------------------------------------------------------- */

static void let_go(struct connection *c, bool reset)
{
    if (c->dead)
        return;
    /* A transfer that was cut off must not look as if it were complete. */
    struct linger at_once = {1, 0};
    if (reset)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    close(c->fd);
    free(c->waiting.p);
    c->waiting = (struct buf){0};
    c->dead = true;
    if (c->channel)
        open_count--;
    else
        lingering--;
}

/* It broke on this side: the controller must know. */
static void broke(struct connection *c)
{
    if (c->dead)
        return;
    if (c->channel)
        frame_out(T_EGRESS_CLOSE, 0, c->channel, NULL, 0);
    let_go(c, true);
}

static struct connection *by_channel(uint32_t channel)
{
    struct connection *c = connections;
    while (c && (c->dead || c->channel != channel))
        c = c->next;
    return channel & OUR_CHANNEL ? c : NULL;
}

static void credit(struct connection *c)
{
    uint64_t limit = c->received - (c->waiting.len - c->waiting_at) + INWARD_WINDOW;
    if (c->write_end || limit - c->credited < INWARD_WINDOW / 2)
        return;
    c->credited = limit;
    uint8_t p[8];
    put64(p, limit);
    frame_out(T_EGRESS_CREDIT, 0, c->channel, p, sizeof p);
}

/* What waits goes to the program as far as it takes it; then the end, when there is one. */
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
            broke(c);
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
        let_go(c, false);
}

/* One piece from the program to the wire. */
static void read_piece(struct connection *c)
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
        broke(c);
        return;
    }
    put64(piece, c->sent);
    if (r > 0) {
        frame_out(T_EGRESS_DATA, 0, c->channel, piece, 8 + (size_t)r);
        c->sent += (uint64_t)r;
        return;
    }
    frame_out(T_EGRESS_EOF, 0, c->channel, piece, 8);
    c->read_end = true;
    if (c->shut)
        let_go(c, false);
}

/* A refused one: nothing it says counts, but closing with unread bytes would take its answer away. */
static void linger(struct connection *c, uint64_t now_ms)
{
    static uint8_t waste[4096];
    ssize_t r = 1;
    for (int i = 0; c->readable && i < 16 && r > 0; i++)
        r = recv(c->fd, waste, sizeof waste, 0);
    bool empty = r < 0 && errno == EAGAIN;
    if (empty)
        c->readable = false;
    if (r == 0 || (r < 0 && !empty) || c->until_ms <= now_ms)
        let_go(c, false);
}

static bool wants_to_send(const struct connection *c)
{
    return !c->dead && c->channel && c->readable && !c->read_end && c->sent < c->limit;
}

bool egress_pending(void)
{
    if (wire_queued() >= QUEUE_ROOM)
        return false; /* the wire wakes us when it has room */
    for (struct connection *c = connections; c; c = c->next)
        if (wants_to_send(c))
            return true;
    return false;
}

static void bury(void)
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

void egress_pump(void)
{
    struct connection *served = NULL, **served_end = &served, **at = &connections;
    bury();
    while (*at) {
        struct connection *c = *at;
        if (!wants_to_send(c) || wire_queued() >= QUEUE_ROOM) {
            at = &c->next;
            continue;
        }
        read_piece(c);
        *at = c->next;
        c->next = NULL;
        *served_end = c;
        served_end = &c->next;
    }
    /* Whoever was served goes to the end, so that all get their turn. */
    *at = served;
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static bool add_connection(int fd, uint32_t channel)
{
    struct connection *c = calloc(1, sizeof *c);
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    if (!c || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0) {
        free(c);
        close(fd);
        return false;
    }
    c->src = (struct source){SRC_EGRESS, NULL, 0};
    c->fd = fd;
    c->channel = channel;
    c->credited = INWARD_WINDOW;
    c->next = connections;
    connections = c;
    if (channel)
        open_count++;
    else
        lingering++;
    return true;
}

static void open_channel(int fd)
{
    last_channel = (last_channel + 1) & ~OUR_CHANNEL;
    uint32_t channel = OUR_CHANNEL | last_channel;
    uint8_t p[8];
    put64(p, INWARD_WINDOW);
    if (add_connection(fd, channel))
        frame_out(T_EGRESS_OPEN, 0, channel, p, sizeof p);
}

static void refuse(int fd)
{
    turned_away++;
    if (send(fd, TOO_MANY, sizeof TOO_MANY - 1, MSG_NOSIGNAL) < 0 || shutdown(fd, SHUT_WR) < 0)
        close(fd);
    else if (add_connection(fd, 0))
        connections->until_ms = now_us() / 1000 + LINGER_MS;
}

static void accept_some(void)
{
    for (int i = 0; i < 64 && accepting(); i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                accept_at_ms = now_us() / 1000 + NO_DESCRIPTORS_MS;
            return;
        }
        if (open_count < most)
            open_channel(fd);
        else
            refuse(fd);
    }
}

void egress_event(struct source *src, uint32_t events)
{
    if (src->kind == SRC_EGRESS_LISTENER) {
        if (listener >= 0)
            accept_some();
        return;
    }
    struct connection *c = (struct connection *)(void *)src;
    if (c->dead)
        return;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
        c->readable = true;
    if (events & EPOLLOUT)
        c->writable = true;
    if (!c->channel)
        linger(c, now_us() / 1000);
    else if (events & EPOLLERR)
        broke(c);
    else if (c->writable)
        flush(c);
}

/* ---- from the controller ----------------------------------------------------------------------------------- */

void egress_result(uint32_t channel, const uint8_t *p, size_t n)
{
    struct connection *c = by_channel(channel);
    struct reader r = {p, n, false};
    uint32_t error = rd32(&r);
    uint64_t limit = rd64(&r);
    if (!c || r.bad)
        return;
    if (error)
        let_go(c, true);
    else if (limit > c->limit)
        c->limit = limit;
}

void egress_credit(uint32_t channel, const uint8_t *p, size_t n)
{
    struct connection *c = by_channel(channel);
    struct reader r = {p, n, false};
    uint64_t limit = rd64(&r);
    if (c && !r.bad && limit > c->limit)
        c->limit = limit;
}

void egress_data(uint32_t channel, const uint8_t *p, size_t n)
{
    struct connection *c = by_channel(channel);
    struct reader r = {p, n, false};
    uint64_t offset = rd64(&r);
    if (!c || r.bad)
        return;
    if (c->write_end || offset != c->received || r.left > c->credited - c->received) {
        broke(c); /* a controller that counts never gets here */
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

void egress_eof(uint32_t channel, const uint8_t *p, size_t n)
{
    struct connection *c = by_channel(channel);
    struct reader r = {p, n, false};
    uint64_t total = rd64(&r);
    if (!c || r.bad)
        return;
    if (total != c->received) {
        broke(c);
        return;
    }
    c->write_end = true;
    flush(c);
}

void egress_close(uint32_t channel)
{
    struct connection *c = by_channel(channel);
    if (c)
        let_go(c, true);
}

/* ---- time and controllers ---------------------------------------------------------------------------------- */

void egress_forget(void)
{
    listening = false;
    for (struct connection *c = connections; c; c = c->next)
        let_go(c, true);
    last_channel = 0;
    listen_by_ms = now_us() / 1000 + LISTEN_MS;
}

/* As with the lease: counted in steps, so that a pause of the container is no silence of the controller. */
static void hear_silence(uint64_t now_ms)
{
    static uint64_t left, last, heard;
    uint64_t step = now_ms - last < 1000 ? now_ms - last : 1000;
    last = now_ms;
    if (frames_in != heard) {
        heard = frames_in;
        left = silence_ms;
        silent = false;
        return;
    }
    left = left > step ? left - step : 0;
    if (!listening || silent || !silence_ms || left)
        return;
    silent = true;
    for (struct connection *c = connections; c; c = c->next)
        broke(c);
}

static void tell_turned_away(uint64_t now_ms)
{
    static uint64_t told_ms;
    if (!turned_away || !listening || silent || now_ms - told_ms < TELL_MS)
        return;
    uint8_t p[4];
    put32(p, turned_away);
    frame_out(T_EGRESS_REFUSED, 0, 0, p, sizeof p);
    turned_away = 0;
    told_ms = now_ms;
}

void egress_timers(uint64_t now_ms)
{
    hear_silence(now_ms);
    tell_turned_away(now_ms);
    if (!listening && listener >= 0 && listen_by_ms <= now_ms)
        close_listener();
    for (struct connection *c = connections; lingering && c; c = c->next)
        if (!c->dead && !c->channel && c->until_ms <= now_ms)
            let_go(c, false);
}
