/*
 * Ports on which programs inside listen, as far as connect.c can reach them. Outside a container
 * the kernel lists those of the whole machine, so none are returned.
 */
#include "ports.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_PORTS 256
/* Lines of /proc/net: every connection has one as well. */
#define MOST_LINES 8192
#define LISTENS 0x0A

/* The kernel's format: words of 32 bits, each as a number of this machine. */
static bool is_local(const char *address)
{
    static const char loopback6[] = "00000000000000000000000001000000", mapped[] = "0000000000000000FFFF0000";
    if (strncmp(address, mapped, sizeof mapped - 1) == 0)
        address += sizeof mapped - 1;
    bool is_v4 = strlen(address) == 8;
    bool is_any = address[strspn(address, "0")] == 0;
    return is_any || (is_v4 && strcmp(address + 6, "7F") == 0) || strcmp(address, loopback6) == 0;
}

static size_t add_port(uint16_t ports[MOST_PORTS], size_t n, uint16_t port)
{
    size_t at = 0;
    while (at < n && ports[at] < port)
        at++;
    if (n == MOST_PORTS || (at < n && ports[at] == port))
        return n;
    memmove(ports + at + 1, ports + at, (n - at) * sizeof *ports);
    ports[at] = port;
    return n + 1;
}

static size_t add_listening(uint16_t ports[MOST_PORTS], size_t n, const char *path)
{
    FILE *f = fopen(path, "re");
    char line[256], address[33];
    unsigned port, state;
    for (int i = 0; f && i < MOST_LINES && fgets(line, sizeof line, f); i++)
        if (sscanf(line, " %*d: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x", address, &port, &state) == 3 && state == LISTENS && is_local(address))
            n = add_port(ports, n, (uint16_t)port);
    if (f)
        fclose(f);
    return n;
}

void ports_list(const struct frame *f)
{
    uint16_t ports[MOST_PORTS];
    size_t n = 0;
    if (is_init) {
        n = add_listening(ports, n, "/proc/net/tcp");
        n = add_listening(ports, n, "/proc/net/tcp6");
    }
    struct buf b = {0};
    buf32(&b, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        buf16(&b, ports[i]);
    frame_out(T_PORT_LISTED, 0, f->channel, b.p, b.len);
    free(b.p);
}
