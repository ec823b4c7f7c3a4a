/*
 * Event loop of sbxd: waits with epoll, calls each ready source, and runs what is due per round.
 * It may include every folder, so that a lower one need not include a higher one: results of disk/
 * go from here to commands/.
 */
#include "loop.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "commands/commands.h"
#include "disk/disk.h"
#include "connections/connections.h"
#include "egress/egress.h"
#include "files/files.h"
#include "pod/pod.h"
#include "wire/wire.h"

#define RETRY_MS 10

/* ---- events ---------------------------------------------------------------------------------- */

static void frames_ready(struct source *src, uint32_t events)
{
    (void)src, (void)events;
    wire_readable();
}

/* Only wakes the loop: each round writes what it can. */
static void room_ready(struct source *src, uint32_t events) { (void)src, (void)events; }

static void files_ready(struct source *src, uint32_t events)
{
    (void)src, (void)events;
    files_collect();
}

static void watches_are_ready(struct source *src, uint32_t events)
{
    (void)src, (void)events;
    watches_ready();
}

static void disk_ready(struct source *src, uint32_t events)
{
    struct disk_suspects found;
    bool only_these;
    (void)src, (void)events;
    if (disk_collect(&found, &only_these))
        commands_end_writers(found.writers, found.writers_n, only_these);
    commands_finish_done();
}

static struct source frames_source = {.ready = frames_ready}, room_source = {.ready = room_ready};
static struct source files_source = {.ready = files_ready}, disk_source = {.ready = disk_ready};
static struct source watches_source = {.ready = watches_are_ready};

void loop_watch(int fd, struct source *src)
{
    if (!poll_add(fd, EPOLLIN, src))
        die("epoll");
}

/*
 * Added and removed as a whole: without requested events a closed pipe would still report EPOLLHUP.
 * The kernel counts the watches of all processes of a uid, so commands can exhaust the limit
 * (fs.epoll.max_user_watches); a failed change is retried soon. Returns true when `watched` is as
 * wanted.
 */
static bool watch_if(bool wanted, bool *watched, int fd, struct source *src, uint32_t events)
{
    if (wanted != *watched && (wanted ? poll_add(fd, events, src) : poll_remove(fd)))
        *watched = wanted;
    return wanted == *watched;
}

/* ---- one round ------------------------------------------------------------------------------- */

void loop_round(uint64_t now)
{
    static bool reading, writing;
    static unsigned connection;
    int wait = commands_timers(now);
    commands_free_dead();
    disk_running(command_count(true));
    egress_timers(now);
    connections_pump();
    wire_pump();
    commands_hash();
    egress_poll_listener(now);
    const int due[] = {connections_wait(), watches_timers(now), listen_timers(now)};
    for (int i = 0; i < 3; i++)
        if (due[i] >= 0 && (wait < 0 || wait > due[i]))
            wait = due[i];
    /* wire_take has removed them. */
    if (connection != wire_connection)
        reading = writing = false;
    connection = wire_connection;
    bool watched = watch_if(wire_wants_write(), &writing, 1, &room_source, EPOLLOUT);
    watched = watch_if(wire_wants_read(), &reading, 0, &frames_source, EPOLLIN) && watched;
    if (!watched && (wait < 0 || wait > RETRY_MS))
        wait = RETRY_MS;
    flood_pause();
    struct epoll_event events[64];
    int n = epoll_wait(epoll_fd, events, 64, wait < 0 || wait > 1000 ? 1000 : wait);
    for (int i = 0; i < n; i++) {
        struct source *src = events[i].data.ptr;
        src->ready(src, events[i].events);
    }
}

void loop_init(void)
{
    workspace_fd = open(workspace_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (workspace_fd < 0)
        die(workspace_path);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die("epoll");
    files_init();
    watches_init();
    disk_init();
    loop_watch(files_eventfd(), &files_source);
    loop_watch(disk_eventfd(), &disk_source);
    if (watches_fd() >= 0)
        loop_watch(watches_fd(), &watches_source);
}
