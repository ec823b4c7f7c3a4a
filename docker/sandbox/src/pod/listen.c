/*
 * Connections of relays. Only a process that the runtime has put into our PID namespace may speak:
 * its parent is outside, so its number here is 0, and no command can make itself such a process.
 * A connection waits, with a few others at most, until its HELLO is accepted; then it is the wire,
 * and all others end.
 */
#include "pod.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../wire/wire.h"

#define MOST_WAITING 4
#define HELLO_MS 2000
#define NO_DESCRIPTORS_MS 100
#define BACKLOG 8
#define REFUSED_MS 1 /* a rest after one that is no relay's: a command may open thousands */
#define RETRY_MS 10
#define REPLACED_MS 2500 /* a replaced relay passes its last bytes on, and ends before */
#define MOST_REPLACED 4

/* Not in the headers of older systems; tests build with a number that no kernel has. */
#ifndef PEER_PIDFD
#define PEER_PIDFD 77
#endif

struct waiting {
    struct source src;
    int fd;
    int relay; /* a descriptor of the process; -1: the kernel has none */
    uint64_t until_ms;
    uint8_t bytes[4096];
    size_t n;
};

static void listener_ready(struct source *src, uint32_t events);
static void waiting_ready(struct source *src, uint32_t events);

static struct source listener_src = {.ready = listener_ready};
static int listener = -1, nowhere = -1;
static bool polled;
static uint64_t accept_at_ms; /* not before: sbxd was out of descriptors */
static uint64_t queued_after_ms; /* whatever waits in the kernel's queue has connected since then */
static struct waiting waiting[MOST_WAITING];
static int session_relay = -1;
static struct replaced {
    int relay;
    uint64_t until_ms;
} replaced[MOST_REPLACED];

unsigned socket_address(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, SOCKET_NAME, sizeof SOCKET_NAME - 1);
    return offsetof(struct sockaddr_un, sun_path) + sizeof SOCKET_NAME - 1;
}

/* ---- the peer -------------------------------------------------------------------------------- */

static uint64_t since_boot_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Reads the parent's number, 0 for one outside, and a time at which it ran already. */
static bool read_process(pid_t pid, int *parent, uint64_t *ran_at_ms)
{
    char path[32], text[1024];
    unsigned long long ticks;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *end = proc_read(AT_FDCWD, path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (!end || sscanf(end + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", parent, &ticks) != 2)
        return false;
    *ran_at_ms = (ticks + 1) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    return true;
}

/*
 * Its number alone proves nothing: a command could connect, end, and let the number go to the next
 * relay. A descriptor of the process that connected proves it, if that still runs; on a kernel
 * without that, the number must have been in use by the same process since before it connected.
 * Returns a descriptor of it (-1: none) in `pinned`.
 */
static bool is_relay(int fd, int *pinned)
{
    struct ucred peer;
    int parent;
    uint64_t ran_at_ms;
    socklen_t n = sizeof peer, m = sizeof *pinned;
    *pinned = -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid <= 0 || (peer.uid && peer.uid != getuid()))
        return false;
    bool exact = getsockopt(fd, SOL_SOCKET, PEER_PIDFD, pinned, &m) == 0;
    if (!exact && errno != ENOPROTOOPT)
        return false;
    if (!exact)
        *pinned = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    bool outside = read_process(peer.pid, &parent, &ran_at_ms) && parent == 0 && (exact || ran_at_ms <= queued_after_ms);
    struct pollfd ended = {*pinned, POLLIN, 0};
    if (outside && poll(&ended, 1, 0) == 0)
        return true;
    if (*pinned >= 0)
        close(*pinned);
    return false;
}

/* ---- connections without a session ----------------------------------------------------------- */

/* Commands can stop a relay, and one that is stopped sees no end of its connection. */
static void end_relay(int *relay)
{
    if (*relay < 0)
        return;
    syscall(SYS_pidfd_send_signal, *relay, SIGKILL, NULL, 0);
    close(*relay);
    *relay = -1;
}

/* The next of the ring makes room. */
static void replace_session_relay(int relay)
{
    static size_t next;
    struct replaced *r = &replaced[next++ % MOST_REPLACED];
    end_relay(&r->relay);
    *r = (struct replaced){session_relay, now_us() / 1000 + REPLACED_MS};
    session_relay = relay;
}

static void end_wire(void)
{
    wire_take(nowhere);
    wire_ended = true;
    end_relay(&session_relay);
}

/* Its place is free when `fd` is -1. */
static void leave(struct waiting *w)
{
    poll_close(&w->fd);
    end_relay(&w->relay);
    explicit_bzero(w->bytes, w->n);
    w->n = 0;
}

static void waiting_ready(struct source *src, uint32_t events)
{
    struct waiting *w = src->owner;
    (void)events;
    /* Enough for the filler before a HELLO, and no more, so that none of them holds others up. */
    for (int i = 0; i < 20 && w->fd >= 0; i++) {
        ssize_t r = read(w->fd, w->bytes + w->n, sizeof w->bytes - w->n);
        if (r < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (r <= 0) {
            leave(w);
            return;
        }
        w->n += (size_t)r;
        size_t at = 0, step = 1;
        unsigned before = wire_connection;
        while (at < w->n && (step = wire_greet(w->fd, w->bytes + at, w->n - at)))
            at += step;
        memmove(w->bytes, w->bytes + at, w->n - at);
        w->n -= at;
        if (wire_connection != before) {
            replace_session_relay(w->relay);
            w->relay = -1;
            for (size_t k = 0; k < MOST_WAITING; k++)
                leave(&waiting[k]);
        }
    }
}

/* A free place; if there is none, the connection that has waited longest is closed. */
static struct waiting *place(void)
{
    struct waiting *oldest = &waiting[0];
    for (size_t i = 0; i < MOST_WAITING; i++) {
        if (waiting[i].fd < 0)
            return &waiting[i];
        if (waiting[i].until_ms < oldest->until_ms)
            oldest = &waiting[i];
    }
    leave(oldest);
    return oldest;
}

/* Returns false when it is no relay's. */
static bool greet(int fd)
{
    int relay;
    if (!is_relay(fd, &relay)) {
        close(fd);
        return false;
    }
    struct waiting *w = place();
    *w = (struct waiting){.src = {.ready = waiting_ready, .owner = w}, .fd = fd, .relay = relay, .until_ms = now_us() / 1000 + HELLO_MS};
    /* The relay copies nothing before this byte. */
    if (send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 || !poll_add(fd, EPOLLIN, &w->src))
        leave(w);
    return true;
}

static void listener_ready(struct source *src, uint32_t events)
{
    (void)src, (void)events;
    uint64_t begun_ms = since_boot_ms();
    /* All that the queue can hold: what is there afterwards has connected since. */
    for (int i = 0; i < BACKLOG + 1; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            accept_at_ms = now_us() / 1000 + NO_DESCRIPTORS_MS;
            return;
        }
        if (fd < 0)
            break;
        if (!greet(fd))
            accept_at_ms = now_us() / 1000 + REFUSED_MS;
    }
    queued_after_ms = begun_ms;
}

/* ---- for the loop ---------------------------------------------------------------------------- */

void listen_init(void)
{
    struct sockaddr_un address;
    unsigned length = socket_address(&address);
    for (size_t i = 0; i < MOST_WAITING; i++)
        waiting[i].fd = waiting[i].relay = -1;
    for (size_t i = 0; i < MOST_REPLACED; i++)
        replaced[i].relay = -1;
    nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (nowhere < 0 || listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, BACKLOG) < 0)
        die("listen");
    end_wire();
}

int listen_timers(uint64_t now_ms)
{
    if (listener < 0)
        return -1;
    static bool open;
    if (open && wire_ended)
        end_wire();
    open = !wire_ended;
    bool wanted = accept_at_ms <= now_ms;
    if (wanted != polled && (wanted ? poll_add(listener, EPOLLIN, &listener_src) : poll_remove(listener)))
        polled = wanted;
    uint64_t next = polled ? UINT64_MAX : wanted ? now_ms + RETRY_MS : accept_at_ms;
    for (size_t i = 0; i < MOST_WAITING; i++) {
        if (waiting[i].fd >= 0 && waiting[i].until_ms <= now_ms)
            leave(&waiting[i]);
        if (waiting[i].fd >= 0 && waiting[i].until_ms < next)
            next = waiting[i].until_ms;
    }
    for (size_t i = 0; i < MOST_REPLACED; i++) {
        if (replaced[i].relay >= 0 && replaced[i].until_ms <= now_ms)
            end_relay(&replaced[i].relay);
        if (replaced[i].relay >= 0 && replaced[i].until_ms < next)
            next = replaced[i].until_ms;
    }
    return next == UINT64_MAX ? -1 : (int)(next - now_ms);
}
