/*
 * A stream's bytes between the pipe and the controller's acknowledgement. Memory grows on demand
 * from 64 KiB to the window, is not copied into forked shims (MADV_DONTFORK keeps fork cheap), and
 * small rings are reused.
 */
#include "commands.h"

#include <sys/mman.h>

#define FIRST_CAP (64u << 10)
#define CACHED 4

static size_t used;
static uint8_t *cache[CACHED];
static int cached;

static uint8_t *ring_alloc(size_t cap)
{
    if (cap == FIRST_CAP && cached)
        return cache[--cached];
    uint8_t *p = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, cap, MADV_DONTFORK);
    return p;
}

static void ring_release(uint8_t *p, size_t cap)
{
    if (cap == FIRST_CAP && cached < CACHED)
        cache[cached++] = p;
    else
        munmap(p, cap);
}

static size_t window(const struct ring *r)
{
    return used < RING_BUDGET ? WINDOW_BYTES : r->cap > WINDOW_MIN ? r->cap : WINDOW_MIN;
}

size_t ring_space(const struct ring *r)
{
    size_t kept = (size_t)(r->end - r->base), max = window(r);
    return kept < max ? max - kept : 0;
}

static int split(const struct ring *r, uint64_t from, size_t n, struct iovec out[2])
{
    size_t at = (size_t)(from & (r->cap - 1)), first = r->cap - at < n ? r->cap - at : n;
    out[0] = (struct iovec){r->p + at, first};
    out[1] = (struct iovec){r->p, n - first};
    return n == 0 ? 0 : n > first ? 2 : 1;
}

static bool grow(struct ring *r)
{
    size_t cap = r->cap ? r->cap * 2 : FIRST_CAP;
    uint8_t *p = ring_alloc(cap);
    if (!p)
        return false;
    struct iovec old[2];
    uint64_t at = r->base;
    int n = r->cap ? split(r, r->base, (size_t)(r->end - r->base), old) : 0;
    for (int i = 0; i < n; i++)
        for (size_t done = 0; done < old[i].iov_len;) {
            size_t to = (size_t)(at & (cap - 1)), len = old[i].iov_len - done;
            if (len > cap - to)
                len = cap - to;
            memcpy(p + to, (uint8_t *)old[i].iov_base + done, len);
            done += len;
            at += len;
        }
    if (r->cap)
        ring_release(r->p, r->cap);
    used += cap - r->cap;
    r->p = p;
    r->cap = cap;
    return true;
}

int ring_room(struct ring *r, struct iovec out[2])
{
    size_t space = ring_space(r);
    if (!space)
        return 0;
    /* Grows when less than a quarter is free, so that a fast writer soon gets long reads. */
    if ((r->cap == 0 || r->cap - (r->end - r->base) < r->cap / 4) && r->cap < window(r))
        grow(r);
    size_t room = r->cap - (size_t)(r->end - r->base);
    return room ? split(r, r->end, room < space ? room : space, out) : 0;
}

int ring_slice(const struct ring *r, uint64_t from, size_t n, struct iovec out[2])
{
    return split(r, from, n, out);
}

void ring_drop(struct ring *r, uint64_t upto)
{
    if (upto > r->base)
        r->base = upto < r->end ? upto : r->end;
    /* An empty small ring keeps its warm memory; a big one returns it. */
    if (r->base == r->end && r->cap > FIRST_CAP)
        ring_free(r);
}

void ring_free(struct ring *r)
{
    if (r->cap) {
        ring_release(r->p, r->cap);
        used -= r->cap;
    }
    r->p = NULL;
    r->cap = 0;
}
