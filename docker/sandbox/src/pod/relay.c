/*
 * `sbxd relay`: copies bytes between its stdin and stdout and process 1 of its PID namespace, until
 * either ends. It holds at most one piece for each direction.
 */
#include "pod.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TRIES 40
#define AGAIN_US 25000
#define LAST_MS 2000
enum { ENDED = 0, NO_LISTENER = 2, REFUSED = 3 };

struct flow {
    int from, to;
    size_t at, n;
    bool ended;
    uint8_t bytes[64 << 10];
};

/* Returns false when the other end is closed. */
static bool copy(struct flow *f)
{
    if (!f->n && !f->ended) {
        ssize_t r = read(f->from, f->bytes, sizeof f->bytes);
        f->ended = r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR);
        f->n = r > 0 ? (size_t)r : 0;
        f->at = 0;
    }
    if (!f->n)
        return true;
    ssize_t w = write(f->to, f->bytes + f->at, f->n);
    if (w < 0)
        return errno == EAGAIN || errno == EINTR;
    f->at += (size_t)w;
    f->n -= (size_t)w;
    return true;
}

static void copy_both(int connection)
{
    static struct flow in = {.from = 0}, out = {.to = 1};
    in.to = out.from = connection;
    bool passed_end = false;
    for (int number = 0; number <= 1; number++)
        fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK);
    fcntl(connection, F_SETFL, O_NONBLOCK);
    while (!out.ended || out.n) {
        /* Without requested events a descriptor still reports its end, and the loop would spin. */
        struct pollfd p[] = {
            {in.n || in.ended ? -1 : in.from, POLLIN, 0},
            {in.n ? in.to : -1, POLLOUT, 0},
            {out.n || out.ended ? -1 : out.from, POLLIN, 0},
            {out.to, out.n ? POLLOUT : 0, 0},
        };
        /* At its end: if the runtime of the node has died, stdout has no reader any more. */
        if (poll(p, 4, out.ended ? LAST_MS : -1) == 0)
            return;
        if (!copy(&out) || (p[3].revents & (POLLERR | POLLHUP)))
            return;
        if (!copy(&in)) {
            /* sbxd has closed its end: its last bytes are still passed on. */
            in.n = 0;
            in.ended = passed_end = true;
        }
        if (in.ended && !in.n && !passed_end)
            passed_end = shutdown(connection, SHUT_WR) == 0;
    }
}

/* A connection that process 1 has accepted; else -1 with `*code` set. */
static int connect_inside(int *code)
{
    struct sockaddr_un address;
    struct ucred peer;
    unsigned length = socket_address(&address);
    *code = NO_LISTENER;
    /* sbxd may only be starting, or in doubt whether our number was another's before. */
    for (int i = 0; i < TRIES; i++, usleep(AGAIN_US)) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t n = sizeof peer;
        uint8_t greeting;
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
            peer.pid == 1) {
            if (read(fd, &greeting, 1) == 1)
                return fd;
            *code = REFUSED;
        }
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

int relay(void)
{
    /* The kernel has done it where the binary may not be read. */
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, "sbxd-relay");
    signal(SIGPIPE, SIG_IGN);
    int code, connection = connect_inside(&code);
    if (connection < 0) {
        fputs(code == REFUSED ? "sbxd relay: refused: it is not the container runtime that has started this\n"
                              : "sbxd relay: no sbxd listens in this sandbox\n", stderr);
        return code;
    }
    copy_both(connection);
    return ENDED;
}
