/*
 * Connections to a port of the loopback interface, on a channel of the controller's. Programs that
 * name “localhost” listen on either of its addresses, so the second is tried where the first
 * refuses. Once accepted, the connection is like one of egress.
 */
#include "ports.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_CONNECTIONS 256

static void answer(uint32_t channel, int error)
{
    uint8_t p[12];
    put32(p, (uint32_t)error);
    put64(p + 4, error ? 0 : INWARD_WINDOW);
    frame_out(T_PORT_RESULT, 0, channel, p, sizeof p);
}

/* A socket that connects or is connected, or -1 with errno. */
static int connecting_socket(int family, uint16_t port, bool *connected)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int done = family == AF_INET ? connect(fd, (struct sockaddr *)&v4, sizeof v4) : connect(fd, (struct sockaddr *)&v6, sizeof v6);
    *connected = done == 0;
    if (done == 0 || errno == EINPROGRESS)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void connect_event(struct connection *c, uint32_t events);

/* Returns 0 or an errno. `limit`: the controller's credit. */
static int connect_to(int family, uint16_t port, uint32_t channel, uint64_t limit)
{
    bool connected;
    int fd = connecting_socket(family, port, &connected);
    if (fd < 0)
        return errno;
    struct connection *c = connection_add(fd, channel, 0);
    if (!c)
        return ENOMEM;
    c->limit = limit;
    if (connected) {
        answer(channel, 0);
    } else {
        c->connecting = connect_event;
        /* Set for the first address only: then there is a second one. */
        c->port = family == AF_INET ? port : 0;
    }
    return 0;
}

static void connect_or_refuse(int family, uint16_t port, uint32_t channel, uint64_t limit)
{
    int error = connect_to(family, port, channel, limit);
    if (error && family == AF_INET)
        connect_or_refuse(AF_INET6, port, channel, limit);
    else if (error)
        answer(channel, error == EAFNOSUPPORT || error == EADDRNOTAVAIL ? ECONNREFUSED : error);
}

static void connect_event(struct connection *c, uint32_t events)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    if (error) {
        uint16_t port = c->port;
        connection_close(c, true);
        /* A reset right after the accept is no refusal. */
        if (port && error == ECONNREFUSED)
            connect_or_refuse(AF_INET6, port, c->channel, c->limit);
        else
            answer(c->channel, error);
    } else if (events & EPOLLOUT) {
        c->connecting = NULL;
        answer(c->channel, 0);
    }
}

void ports_connect(const struct frame *f)
{
    struct reader r = frame_reader(f);
    uint16_t port = rd16(&r);
    uint64_t limit = rd64(&r);
    if (r.bad || !port || !f->channel || f->channel & OUR_CHANNEL || connection_of(f->channel))
        answer(f->channel, EINVAL);
    else if (connections_theirs >= MOST_CONNECTIONS)
        answer(f->channel, EUSERS);
    else
        connect_or_refuse(AF_INET, port, f->channel, limit);
}
