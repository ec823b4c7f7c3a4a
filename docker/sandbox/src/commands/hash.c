/*
 * Hash of each command's output, computed after sending: only EXIT waits for it. In a flood hashing
 * costs as much as all other work on the bytes, so a thread does it, one stream at a time.
 */
#include "commands.h"

#include <pthread.h>

#define FLOOD_BYTES (128u << 10) /* less waits for more */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t handed = PTHREAD_COND_INITIALIZER, returned = PTHREAD_COND_INITIALIZER;
/* Under the lock: the stream whose hash and bytes belong to the thread; NULL returns them. */
static struct stream *held;
static struct iovec pieces[2];
static int count;

static void add(struct sha256 *hash, const struct iovec *v, int n)
{
    for (int i = 0; i < n; i++)
        sha256_add(hash, v[i].iov_base, v[i].iov_len);
}

static void *hash_thread(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!held)
            pthread_cond_wait(&handed, &lock);
        struct stream *s = held;
        pthread_mutex_unlock(&lock);
        add(&s->hash, pieces, count);
        pthread_mutex_lock(&lock);
        held = NULL;
        pthread_cond_signal(&returned);
    }
    return NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool begin_thread(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256u << 10);
    bool began = pthread_create(&thread, &attr, hash_thread, NULL) == 0;
    pthread_attr_destroy(&attr);
    return began;
}

static int unhashed(const struct stream *s, struct iovec v[2])
{
    uint64_t from = s->hash.bytes;
    return from < s->ring.end ? ring_slice(&s->ring, from, (size_t)(s->ring.end - from), v) : 0;
}

static bool hand_to_thread(struct stream *s)
{
    static bool began;
    if (!began && !(began = begin_thread()))
        return false;
    pthread_mutex_lock(&lock);
    bool free = !held;
    if (free) {
        s->hashing = true;
        s->hashed = s->hash.bytes;
        count = unhashed(s, pieces);
        held = s;
        pthread_cond_signal(&handed);
    }
    pthread_mutex_unlock(&lock);
    return free;
}

static void reclaim(struct stream *s, bool wait)
{
    if (!s->hashing)
        return;
    pthread_mutex_lock(&lock);
    while (wait && held == s)
        pthread_cond_wait(&returned, &lock);
    s->hashing = held == s;
    pthread_mutex_unlock(&lock);
}

void hash_pending(struct stream *s)
{
    struct iovec v[2];
    reclaim(s, false);
    if (s->hashing)
        return;
    int n = unhashed(s, v);
    /*
     * A ring that may still grow would move under the thread; a full one can collect bytes until a
     * hand-over is worth it.
     */
    bool whole = s->ring.cap >= WINDOW_BYTES;
    if (whole && n && (s->ring.end - s->hash.bytes < FLOOD_BYTES || hand_to_thread(s)))
        return;
    add(&s->hash, v, n);
}

void hash_all(struct stream *s)
{
    struct iovec v[2];
    reclaim(s, true);
    add(&s->hash, v, unhashed(s, v));
}

void hash_until(struct stream *s, uint64_t offset)
{
    if (offset > (s->hashing ? s->hashed : s->hash.bytes))
        hash_all(s);
}
