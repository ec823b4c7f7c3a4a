/*
 * Egress: a listener on 127.0.0.1 whose connections are channels of the stream (connections/).
 * Bytes pass through unparsed: the controller parses, decides and dials. Channel numbers of
 * connections are ours and have the highest bit set.
 */
#include "egress.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_LINGERING 64
#define LINGER_MS 2000
#define NO_DESCRIPTORS_MS 100
#define REPORT_MS 1000   /* how often refused connections are reported */
#define LISTEN_MS 2000 /* a new controller without LISTEN by then uses no egress */

static void listener_ready(struct source *src, uint32_t events);

static struct source listener_src = {.ready = listener_ready};
static int listener = -1;
static uint16_t listener_port;
static bool listener_polled;
static bool listening; /* the controller has sent LISTEN since its WELCOME */
static bool silent;    /* … but has been silent so long that it counts as disconnected */
static uint64_t listen_by_ms;
static uint64_t accept_at_ms; /* not before: sbxd was out of descriptors */
static uint32_t refused;  /* since the last report */
static uint64_t silence_ms;
static size_t most;
static uint32_t last_channel;

#define TOO_MANY_TEXT "Sandlot: this sandbox has too many connections open; close some and try again\n"
static const char TOO_MANY[] = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 78\r\n"
                               "Retry-After: 1\r\nX-Sandlot-Refused: too_many_connections\r\nConnection: close\r\n\r\n" TOO_MANY_TEXT;
_Static_assert(sizeof TOO_MANY_TEXT - 1 == 78, "the length in the head");

/* ---- the listener ---------------------------------------------------------------------------- */

/*
 * True when another connection could be accepted. Not while the controller does not read: OPENs
 * would pile up.
 */
static bool accepting(void)
{
    return listening && !silent && (connections_ours < most || connections_lingering < MOST_LINGERING) && wire_queued() < QUEUE_ROOM;
}

static void poll_listener(bool on)
{
    if (listener < 0 || on == listener_polled)
        return;
    if (on ? poll_add(listener, EPOLLIN, &listener_src) : poll_remove(listener))
        listener_polled = on;
}

void egress_poll_listener(uint64_t now_ms) { poll_listener(accepting() && accept_at_ms <= now_ms); }

static void close_listener(void)
{
    poll_listener(false);
    if (listener >= 0)
        close(listener);
    listener = -1;
}

/* Replaces the listener; on failure the old one stays: commands use its port. */
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

void egress_listen(const struct frame *f)
{
    struct reader r = frame_reader(f);
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
    frame_out(T_EGRESS_RESULT, 0, f->channel, answer, sizeof answer);
}

/* ---- taking connections ---------------------------------------------------------------------- */

static void open_channel(int fd)
{
    last_channel = (last_channel + 1) & ~OUR_CHANNEL;
    uint32_t channel = OUR_CHANNEL | last_channel;
    uint8_t p[8];
    put64(p, INWARD_WINDOW);
    if (connection_add(fd, channel, 0))
        frame_out(T_EGRESS_OPEN, 0, channel, p, sizeof p);
}

void egress_result(const struct frame *f)
{
    struct connection *c = connection_of(f->channel);
    struct reader r = frame_reader(f);
    uint32_t error = rd32(&r);
    uint64_t limit = rd64(&r);
    if (!c || r.bad)
        return;
    if (error)
        connection_close(c, true);
    else if (limit > c->limit)
        c->limit = limit;
}

static void refuse_connection(int fd)
{
    refused++;
    if (send(fd, TOO_MANY, sizeof TOO_MANY - 1, MSG_NOSIGNAL) < 0 || shutdown(fd, SHUT_WR) < 0)
        close(fd);
    else
        connection_add(fd, 0, now_us() / 1000 + LINGER_MS);
}

static void accept_connections(void)
{
    for (int i = 0; i < 64 && accepting(); i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                accept_at_ms = now_us() / 1000 + NO_DESCRIPTORS_MS;
            return;
        }
        if (connections_ours < most)
            open_channel(fd);
        else
            refuse_connection(fd);
    }
}

static void listener_ready(struct source *src, uint32_t events)
{
    (void)src, (void)events;
    if (listener >= 0)
        accept_connections();
}

/* ---- time and controllers -------------------------------------------------------------------- */

void egress_forget(void)
{
    listening = false;
    last_channel = 0;
    listen_by_ms = now_us() / 1000 + LISTEN_MS;
}

/*
 * Counted in steps, like the lease, so that a pause of the container is no silence of the
 * controller.
 */
static void track_silence(uint64_t now_ms)
{
    static uint64_t left, last, last_frames;
    uint64_t step = now_ms - last < 1000 ? now_ms - last : 1000;
    last = now_ms;
    if (frames_in != last_frames) {
        last_frames = frames_in;
        left = silence_ms;
        silent = false;
        return;
    }
    left = left > step ? left - step : 0;
    if (!listening || silent || !silence_ms || left)
        return;
    silent = true;
    connections_end(true);
}

static void report_refused(uint64_t now_ms)
{
    static uint64_t reported_ms;
    if (!refused || !listening || silent || now_ms - reported_ms < REPORT_MS)
        return;
    uint8_t p[4];
    put32(p, refused);
    frame_out(T_EGRESS_REFUSED, 0, 0, p, sizeof p);
    refused = 0;
    reported_ms = now_ms;
}

void egress_timers(uint64_t now_ms)
{
    track_silence(now_ms);
    report_refused(now_ms);
    if (!listening && listener >= 0 && listen_by_ms <= now_ms)
        close_listener();
    connections_linger(now_ms);
}
