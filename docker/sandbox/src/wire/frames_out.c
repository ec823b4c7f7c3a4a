/*
 * Frames to stdout. Answers are queued; commands' bytes are written straight from their rings, as
 * much as one write takes.
 */
#include "wire.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE_KEPT (512u << 10) /* memory of an empty queue */
#define BATCH 24                /* DATA frames per write … */
#define BATCH_BYTES (256u << 10) /* … and bytes: what a write does not take is copied */
#define DATA_PREFIX (HEADER_BYTES + 8)

static struct buf queue;
static size_t queue_at;

static void put_header(uint8_t *h, uint8_t type, uint16_t flags, uint32_t channel, uint32_t length)
{
    h[0] = FRAME_MAGIC;
    h[1] = type;
    put16(h + 2, flags);
    put32(h + 4, channel);
    put32(h + 8, length);
    put32(h + 12, crc32c(HEADER_CRC_START, h, 12));
}

void frame_out(uint8_t type, uint16_t flags, uint32_t channel, const void *payload, size_t n)
{
    if (wire_ended)
        return;
    put_header(buf_add(&queue, HEADER_BYTES), type, flags, channel, (uint32_t)n);
    buf_bytes(&queue, payload, n);
}

void frame_to(int fd, uint8_t type, const void *payload, size_t n)
{
    struct buf b = {0};
    put_header(buf_add(&b, HEADER_BYTES), type, 0, 0, (uint32_t)n);
    buf_bytes(&b, payload, n);
    (void)!send(fd, b.p, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    free(b.p);
}

bool wire_wants_write(void)
{
    return !wire_ended && (queue.len > queue_at || wire_hooks->has_data());
}

size_t wire_queued(void) { return queue.len - queue_at; }

/* Frees written bytes: all of them, or the front once it is the larger part. */
static void compact(void)
{
    if (queue_at == queue.len) {
        queue_at = queue.len = 0;
        if (queue.cap > QUEUE_KEPT) {
            free(queue.p);
            queue = (struct buf){0};
        }
    } else if (queue_at > queue.len / 2) {
        memmove(queue.p, queue.p + queue_at, queue.len - queue_at);
        queue.len -= queue_at;
        queue_at = 0;
    }
}

void wire_flush(void)
{
    ssize_t w = wire_ended ? 0 : write(1, queue.p + queue_at, queue.len - queue_at);
    queue_at += w > 0 ? (size_t)w : 0;
}

void wire_forget_queue(void)
{
    queue_at = queue.len;
    compact();
}

/* Queues the unwritten rest of these pieces, in order. */
static void queue_unwritten(const struct iovec *v, int n, size_t written)
{
    for (int i = 0; i < n; i++) {
        size_t skip = written < v[i].iov_len ? written : v[i].iov_len;
        written -= skip;
        buf_bytes(&queue, (uint8_t *)v[i].iov_base + skip, v[i].iov_len - skip);
    }
}

/* One write: the queue, then as many DATA frames as fit, straight from the rings. */
static bool write_some(void)
{
    static uint8_t prefixes[BATCH][DATA_PREFIX];
    struct iovec v[1 + BATCH * 3];
    int n = 0, frames = 0;
    size_t queued = queue.len - queue_at, total = queued;
    if (queued)
        v[n++] = (struct iovec){queue.p + queue_at, queued};
    struct data_frame d;
    /* While the controller is behind, queued bytes go first; the rings keep the rest. */
    while (queued < MAX_PAYLOAD && frames < BATCH && total < BATCH_BYTES && wire_hooks->next_data(&d)) {
        uint8_t *h = prefixes[frames++];
        put_header(h, T_DATA, d.stream, d.channel, (uint32_t)d.length + 8);
        put64(h + HEADER_BYTES, d.offset);
        v[n++] = (struct iovec){h, DATA_PREFIX};
        for (int i = 0; i < d.pieces; i++)
            v[n++] = d.bytes[i];
        total += DATA_PREFIX + d.length;
    }
    if (n == 0)
        return false;
    ssize_t w = writev(1, v, n);
    if (w < 0 && errno != EAGAIN && errno != EINTR)
        wire_ended = true; /* stdout is closed for good: no controller will ever read */
    size_t done = w > 0 ? (size_t)w : 0;
    size_t from_queue = done < queued ? done : queued;
    queue_at += from_queue;
    compact();
    queue_unwritten(v + (queued ? 1 : 0), n - (queued ? 1 : 0), done - from_queue);
    return done == total;
}

void wire_pump(void)
{
    for (int i = 0; i < 8 && wire_wants_write(); i++)
        if (!write_some())
            return;
}
