/*
 * Output policies. `stream` stores everything until it is acknowledged. `cut` stores the first and
 * the last bytes of each stream: the head is sent on arrival, later bytes rotate in a ring of the
 * tail's size, and the tail is sent after the EXIT that names the gap; hence a cut command never
 * waits for a reader. `limit` stores that many bytes and ends the command at the next one.
 */
#include "commands.h"

#include <limits.h>

/* Buffer for bytes that go to no ring. */
static uint8_t scratch[256u << 10];

static uint64_t remaining_limit(const struct command *c)
{
    uint64_t all = c->out[0].total + c->out[1].total;
    return c->policy.kind != POLICY_LIMIT ? UINT64_MAX : all < c->policy.limit ? c->policy.limit - all : 0;
}

/* Number of the next bytes that go into the ring, where it has room. */
static uint64_t bytes_to_keep(const struct command *c, const struct stream *s)
{
    if (c->policy.kind != POLICY_CUT)
        return remaining_limit(c);
    return s->total < c->policy.head ? c->policy.head - s->total : 0;
}

static int into_scratch(struct iovec v[2])
{
    v[0] = (struct iovec){scratch, sizeof scratch};
    return 1;
}

int output_shorten(struct iovec v[2], int n, uint64_t most)
{
    for (int i = 0; i < n; i++) {
        if (v[i].iov_len > most)
            v[i].iov_len = (size_t)most;
        most -= v[i].iov_len;
    }
    return n == 2 && v[1].iov_len == 0 ? 1 : n;
}

int output_room(struct command *c, struct stream *s, struct iovec v[2])
{
    uint64_t most = bytes_to_keep(c, s);
    int n = most ? ring_room(&s->ring, v) : 0;
    size_t room = (n ? v[0].iov_len : 0) + (n > 1 ? v[1].iov_len : 0);
    /*
     * A writer can use packets (O_DIRECT): the kernel discards the rest of a packet that does not
     * fit.
     */
    if (room < PIPE_BUF && room < most)
        return 0;
    return most < PIPE_BUF ? into_scratch(v) : output_shorten(v, n, most);
}

/* The caller has checked the room. */
static void append(struct ring *ring, const uint8_t *p, size_t n)
{
    while (n) {
        struct iovec v[2];
        if (ring_room(ring, v) == 0)
            die("no room for an output"); /* cannot be: a window is never smaller than CUT_MAX */
        size_t take = v[0].iov_len < n ? v[0].iov_len : n;
        memcpy(v[0].iov_base, p, take);
        ring->end += take;
        p += take;
        n -= take;
    }
}

static void keep_tail(struct command *c, struct stream *s, const uint8_t *p, size_t n)
{
    struct ring *t = &s->tail;
    uint64_t start = s->total;
    if (t->end < start) /* the first bytes after the head */
        t->base = t->end = start;
    if (n > c->policy.tail) {
        p += n - c->policy.tail;
        t->base = t->end = start + (n - c->policy.tail);
        n = c->policy.tail;
    }
    if (t->end + n - t->base > c->policy.tail)
        t->base = t->end + n - c->policy.tail;
    append(t, p, n);
}

/* Hashes and spools bytes that may be dropped. The ring's must be hashed before. */
static void hash_and_spool(struct command *c, struct stream *s, const uint8_t *p, size_t n)
{
    sha256_add(&s->hash, p, n);
    spool_add(c, p, n);
}

/*
 * Distributes the scratch buffer: first to the ring, then to the tail, or counts it as over the
 * limit.
 */
static void store_scratch(struct command *c, struct stream *s, size_t n)
{
    uint64_t most = bytes_to_keep(c, s);
    size_t kept = n < most ? n : (size_t)most;
    hash_all(s);
    append(&s->ring, scratch, kept);
    hash_and_spool(c, s, scratch, kept);
    s->total += kept;
    if (kept == n)
        return;
    if (c->policy.kind == POLICY_LIMIT) {
        if (!c->cause)
            c->cause = CAUSE_OUTPUT_LIMIT;
        command_begin_end(c, CAUSE_OUTPUT_LIMIT, 0);
        return;
    }
    hash_and_spool(c, s, scratch + kept, n - kept);
    keep_tail(c, s, scratch + kept, n - kept);
    s->total += n - kept;
}

void output_commit(struct command *c, struct stream *s, const struct iovec v[2], size_t n)
{
    if (v[0].iov_base == scratch) {
        store_scratch(c, s, n);
        return;
    }
    for (size_t i = 0, left = n; left; i++) {
        size_t piece = left < v[i].iov_len ? left : v[i].iov_len;
        spool_add(c, v[i].iov_base, piece);
        left -= piece;
    }
    s->ring.end += n;
    s->total += n;
}

bool output_gap(const struct command *c, const struct stream *s, uint64_t *from, uint64_t *to)
{
    uint64_t beyond = s->total - s->ring.end;
    if (c->policy.kind != POLICY_CUT)
        beyond = 0;
    *from = s->ring.end;
    *to = beyond > c->policy.tail ? s->total - c->policy.tail : s->ring.end;
    return *to > *from;
}

const struct ring *output_next(struct command *c, struct stream *s, uint64_t *upto)
{
    const struct ring *ring = &s->ring;
    if (s->sent >= ring->end && c->policy.kind == POLICY_CUT && c->state == ENDED) {
        uint64_t from, to;
        output_gap(c, s, &from, &to);
        ring = &s->tail;
        if (s->sent < to)
            s->sent = to;
        if (s->sent < ring->base)
            s->sent = ring->base;
    }
    *upto = s->limit < ring->end ? s->limit : ring->end;
    return s->sent < *upto ? ring : NULL;
}

void output_drop(const struct command *c, struct stream *s)
{
    hash_until(s, s->acked);
    ring_drop(&s->ring, s->acked);
    if (c->state == ENDED)
        ring_drop(&s->tail, s->acked);
}
