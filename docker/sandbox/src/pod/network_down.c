/*
 * `sbxd network-down`: an init container of a Pod takes every interface but the loopback down, for
 * all containers of the Pod. It needs CAP_NET_ADMIN.
 */
#include "pod.h"

#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int say(const char *name)
{
    fprintf(stderr, "sbxd network-down: %s: %s\n", name, strerror(errno));
    return 1;
}

int network_down(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct if_nameindex *all = fd < 0 ? NULL : if_nameindex();
    if (!all)
        return say("list of interfaces");
    for (struct if_nameindex *i = all; i->if_index; i++) {
        struct ifreq r = {0};
        snprintf(r.ifr_name, sizeof r.ifr_name, "%s", i->if_name);
        if (ioctl(fd, SIOCGIFFLAGS, &r) < 0)
            return say(i->if_name);
        if (r.ifr_flags & IFF_LOOPBACK || !(r.ifr_flags & IFF_UP))
            continue;
        r.ifr_flags = (short)(r.ifr_flags & ~IFF_UP);
        if (ioctl(fd, SIOCSIFFLAGS, &r) < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
            return say(i->if_name);
        if (r.ifr_flags & IFF_UP) {
            errno = EBUSY;
            return say(i->if_name);
        }
    }
    if_freenameindex(all);
    close(fd);
    return 0;
}
