/*
 * Bytes of commands: from their pipes to the rings of output.c, and from the controller to stdin.
 */
#include "commands.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Maximum of a pipe, unless the host's administrator allows more */
#define PIPE_MOST (1 << 20)
#define PIPE_AFTER (256u << 10)

/* ---- out ------------------------------------------------------------------------------------- */

static void stream_end(struct command *c, struct stream *s)
{
    poll_close(&s->fd);
    s->polled = false;
    command_finish_if_done(c);
}

/* Pauses reading until there is room. */
static void stream_pause(struct stream *s)
{
    if (s->polled)
        poll_remove(s->fd);
    s->polled = false;
}

/*
 * No process of the command can write any more: the pipe's content is the rest, even if another
 * process still holds the pipe.
 */
void stream_last(struct command *c, struct stream *s)
{
    int bytes;
    if (s->fd < 0)
        return;
    /* A terminal does not show all of it yet. */
    s->rest = c->terminal || ioctl(s->fd, FIONREAD, &bytes) < 0 ? PIPE_MOST : (uint64_t)bytes;
    stream_drain(c, s);
}

/* Reads until the pipe is empty, the window is full, or other sources have waited long enough. */
void stream_drain(struct command *c, struct stream *s)
{
    size_t total = 0;
    while (s->fd >= 0 && (total < PIPE_MOST || c->state == GONE)) {
        struct iovec v[2];
        if (c->state == GONE && s->rest == 0) {
            stream_end(c, s);
            return;
        }
        int n = spool_is_full(c) ? 0 : output_room(c, s, v);
        if (n == 0) {
            stream_pause(s);
            return;
        }
        if (c->state == GONE)
            n = output_shorten(v, n, s->rest);
        size_t room = v[0].iov_len + (n > 1 ? v[1].iov_len : 0);
        ssize_t r = readv(s->fd, v, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0 && errno == EAGAIN) {
            if (c->state == GONE)
                stream_end(c, s);
            return;
        }
        if (r <= 0) {
            stream_end(c, s);
            return;
        }
        uint64_t from = s->total;
        output_commit(c, s, v, (size_t)r);
        total += (size_t)r;
        s->rest -= c->state == GONE ? (size_t)r : 0;
        output_drop(c, s);
        flood_count((size_t)r);
        /* A heavy writer gets a pipe of 1 MiB, which for every command would slow short ones. */
        if (from < PIPE_AFTER && s->total >= PIPE_AFTER)
            fcntl(s->fd, F_SETPIPE_SZ, PIPE_MOST);
        /* Others may follow a whole packet. */
        if ((size_t)r < room && r != PIPE_BUF && c->state != GONE)
            return;
    }
}

void stream_resume(struct command *c, struct stream *s)
{
    output_drop(c, s);
    if (s->fd < 0 || s->polled || spool_is_full(c) || ring_space(&s->ring) < WINDOW_MIN / 4)
        return;
    s->polled = poll_add(s->fd, EPOLLIN, &s->src);
    if (c->state == GONE)
        stream_drain(c, s);
}

void commands_credit(const struct frame *f)
{
    struct command *c = command_by_channel(f->channel);
    struct reader r = frame_reader(f);
    for (int i = 0; c && i < 2; i++) {
        uint64_t limit = rd64(&r);
        if (!r.bad && limit > c->out[i].limit)
            c->out[i].limit = limit;
    }
}

/*
 * A stream that has just sent bytes and has only a few more waits briefly: a flood of tiny writes
 * would cost a frame each on the whole path. The first bytes after a pause never wait, nor do those
 * of a terminal.
 */
bool stream_is_batching(const struct command *c, const struct stream *s)
{
    uint64_t left = s->ring.end - s->sent;
    return left && left < GATHER_BYTES && c->state < GONE && !c->terminal && now_us() - s->sent_us < GATHER_US;
}

static struct command *next_sendable(struct stream **stream)
{
    for (struct command *c = commands; c; c = c->next)
        for (int i = 0; !c->dead && c->attached && c->started && i < 2; i++) {
            struct stream *s = &c->out[i];
            uint64_t upto;
            if (output_next(c, s, &upto) && !stream_is_batching(c, s)) {
                *stream = s;
                return c;
            }
        }
    return NULL;
}

bool commands_have_data(void)
{
    struct stream *s;
    return next_sendable(&s);
}

bool commands_next_data(struct data_frame *out)
{
    struct stream *s;
    struct command *c = next_sendable(&s);
    if (!c)
        return false;
    uint64_t upto;
    const struct ring *ring = output_next(c, s, &upto);
    size_t length = upto - s->sent < MAX_PAYLOAD - 8 ? (size_t)(upto - s->sent) : MAX_PAYLOAD - 8;
    *out = (struct data_frame){.stream = s == c->out ? S_STDOUT : S_STDERR, .channel = c->channel, .offset = s->sent, .length = length};
    out->pieces = ring_slice(ring, s->sent, length, out->bytes);
    s->sent += length;
    s->sent_us = now_us();
    command_sent(c);
    return true;
}

void commands_hash(void)
{
    for (struct command *c = commands; c; c = c->next)
        for (int i = 0; i < 2; i++)
            hash_pending(&c->out[i]);
}

/* ---- in -------------------------------------------------------------------------------------- */

static void stdin_close(struct command *c)
{
    poll_close(&c->in.fd);
    c->in.polled = false;
    ring_free(&c->in.ring);
}

static void stdin_credit(struct command *c)
{
    uint64_t limit = c->in.ring.base + STDIN_WINDOW;
    if (!c->attached || limit - c->in.credited < STDIN_WINDOW / 2)
        return;
    c->in.credited = limit;
    uint8_t p[8];
    put64(p, limit);
    frame_out(T_CREDIT, 0, c->channel, p, sizeof p);
}

void stdin_writable(struct command *c)
{
    struct ring *r = &c->in.ring;
    while (c->in.fd >= 0 && r->end > r->base) {
        struct iovec v[2];
        int n = ring_slice(r, r->base, (size_t)(r->end - r->base), v);
        ssize_t w = writev(c->in.fd, v, n);
        if (w < 0 && errno == EAGAIN)
            break;
        if (w < 0) {
            /* stdin has no reader any more. As after `yes | head`, the rest is discarded. */
            stdin_close(c);
            r->base = r->end;
            break;
        }
        r->base += (uint64_t)w;
    }
    if (c->in.fd >= 0) {
        bool waiting = r->end > r->base;
        if (waiting && !c->in.polled)
            c->in.polled = poll_add(c->in.fd, EPOLLOUT, &c->in.src);
        if (!waiting && c->in.polled) {
            poll_remove(c->in.fd);
            c->in.polled = false;
        }
        if (!waiting && c->in.eof) {
            if (!c->terminal || terminal_end_input(c))
                stdin_close(c);
            else if (!c->in.polled)
                c->in.polled = poll_add(c->in.fd, EPOLLOUT, &c->in.src);
        }
    }
    stdin_credit(c);
}

void commands_data(const struct frame *f)
{
    struct command *c = command_by_channel(f->channel);
    struct reader r = frame_reader(f);
    uint64_t offset = rd64(&r);
    if (!c || r.bad || (f->flags & F_STREAM_MASK) != S_STDIN || c->in.eof)
        return;
    struct ring *ring = &c->in.ring;
    if (offset > ring->end || offset + r.left <= ring->end)
        return; /* a gap cannot happen in an intact stream; a repetition is harmless */
    size_t skip = (size_t)(ring->end - offset), len = r.left - skip;
    const uint8_t *from = r.p + skip;
    if (c->in.fd < 0) {
        ring->base = ring->end += len;
        stdin_credit(c);
        return;
    }
    while (len) {
        struct iovec v[2];
        int pieces = ring_room(ring, v);
        if (pieces == 0)
            break; /* beyond its credit: a controller that counts never gets here */
        size_t take = v[0].iov_len < len ? v[0].iov_len : len;
        memcpy(v[0].iov_base, from, take);
        ring->end += take;
        from += take;
        len -= take;
    }
    stdin_writable(c);
}

void commands_eof(const struct frame *f)
{
    struct command *c = command_by_channel(f->channel);
    struct reader r = frame_reader(f);
    uint64_t total = rd64(&r);
    if (!c || r.bad || (f->flags & F_STREAM_MASK) != S_STDIN || total != c->in.ring.end)
        return;
    c->in.eof = true;
    stdin_writable(c);
}

void command_close(struct command *c)
{
    for (int i = 0; i < 2; i++) {
        poll_close(&c->out[i].fd);
        hash_all(&c->out[i]);
        ring_free(&c->out[i].ring);
        ring_free(&c->out[i].tail);
    }
    if (c->in.ring.cap || c->in.fd >= 0)
        stdin_close(c);
    spool_forget(c);
    session_close(&c->session);
    if (c->slave >= 0)
        close(c->slave);
    c->slave = -1;
    poll_close(&c->ctl);
}
