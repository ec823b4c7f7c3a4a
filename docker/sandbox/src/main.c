/*
 * sbxd: runs the commands of one sandbox. PID 1 in a container, or a plain child in the local-process backend.
 * Speaks the protocol of wire/protocol.h on stdin and stdout, and only that; stderr carries a last word before dying.
 */
#include "commands/command.h"
#include "sessions/sessions.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RETRY_MS 10

bool is_init;
const char *workspace_path = "/workspace";
int workspace_fd;
const char *tmp_dirs[4];
int epoll_fd;
uint8_t sandbox_key[KEY_BYTES];
uint8_t boot_id[ID_BYTES];
sigset_t all_signals;
uint64_t lease_ms = 600000;

static bool told_to_end;

uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

_Noreturn void die(const char *what)
{
    fprintf(stderr, "sbxd: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void only_wake_up(int sig) { (void)sig; }

/*
 * Two signals are read from a descriptor. (Unblocking them while waiting is not enough: epoll_pwait delivers none as long
 * as there is always an event.) A process 1 ignores what comes from inside and has no handler, but only what is not
 * blocked: a blocked signal waits in the queue, which all processes of the uid share, until the commands have none left.
 * Elsewhere all are blocked. Shims inherit the handler that lets SIGCHLD interrupt their waiting.
 */
static int signals_init(void)
{
    sigset_t wanted;
    struct sigaction child = {.sa_handler = only_wake_up}, term = {.sa_handler = only_wake_up};
    sigfillset(&all_signals);
    sigprocmask(SIG_SETMASK, &all_signals, NULL);
    sigaction(SIGCHLD, &child, NULL);
    sigaction(SIGTERM, &term, NULL); /* or the kernel would drop it for process 1 */
    /* gVisor ends its process 1 by the SIGPIPE of its own write. Not ignored: a command would start like that. */
    struct sigaction pipe = {.sa_handler = only_wake_up, .sa_flags = SA_RESTART};
    sigaction(SIGPIPE, &pipe, NULL);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    if (is_init)
        sigprocmask(SIG_SETMASK, &wanted, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void read_signals(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == sizeof info)
        /*
         * From outside the PID namespace the sender has no number here. A command's own TERM is not obeyed: kill()
         * shows its number, and where it chooses the number itself (sigqueue) or there is none (F_SETSIG on a
         * descriptor), the code is another one.
         */
        if (info.ssi_signo == SIGTERM && (!is_init || (info.ssi_code == SI_USER && info.ssi_pid == 0)))
            told_to_end = true;
    commands_reap();
}

/* The end. As PID 1 the kernel takes everything with us; elsewhere our descendants are killed first. */
static _Noreturn void finish(void)
{
    for (int round = 0; !is_init && round < 600; round++) {
        proc_kill_tree(getpid(), NULL, 0);
        pid_t dead;
        while ((dead = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (dead < 0 && errno == ECHILD)
            break;
        usleep(1000);
    }
    sessions_flush();
    _exit(0);
}

/* Descriptors 0, 1 and 2 must be taken, or a pipe of a command would get such a number. */
static void standard_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            die("/dev/null");
    /* Nothing that our parent forgot to close reaches a command. */
    syscall(SYS_close_range, 3, ~0u, 0);
}

/* Added and removed as a whole: with no events asked for, a closed pipe would still report EPOLLHUP for ever. */
static bool watch(int fd, struct source *src, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = src};
    return epoll_ctl(epoll_fd, events ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &e) == 0;
}

static void watch_always(int fd, struct source *src)
{
    if (!watch(fd, src, EPOLLIN))
        die("epoll");
}

/*
 * The kernel counts what all processes of a uid watch, so commands can use up what there is (fs.epoll.max_user_watches).
 * Then it is tried again soon. Returns whether it is as it should be.
 */
static bool watch_if(bool wanted, bool *watched, int fd, struct source *src, uint32_t events)
{
    if (wanted != *watched && watch(fd, src, wanted ? events : 0))
        *watched = wanted;
    return wanted == *watched;
}

/*
 * Runs down while no controller says anything. Counted in steps of at most a second, so that a pause of the
 * container, in which no time passes for us, does not use it up.
 */
static bool lease_over(uint64_t now_ms)
{
    static uint64_t left, last, heard;
    if (!last || frames_in != heard) {
        heard = frames_in;
        left = lease_ms;
    } else {
        uint64_t step = now_ms - last < 1000 ? now_ms - last : 1000;
        left = left > step ? left - step : 0;
    }
    last = now_ms;
    return lease_ms && left == 0;
}

static struct source frames = {SRC_STDIN_FRAMES, NULL, 0};

/* One round: what is due, what may be sent, then a wait for events. Returns whether signals are among them. */
bool loop_round(uint64_t now)
{
    static struct source out = {SRC_STDOUT_FRAMES, NULL, 0};
    static bool reading, writing;
    int wait = commands_timers(now);
    commands_bury();
    disk_running(command_count(true));
    egress_timers(now);
    egress_pump();
    wire_pump();
    commands_hash();
    egress_poll(now);
    int more = egress_wait();
    if (more >= 0 && (wait < 0 || wait > more))
        wait = more;
    bool watched = watch_if(wire_wants_write(), &writing, 1, &out, EPOLLOUT);
    watched = watch_if(wire_wants_read(), &reading, 0, &frames, EPOLLIN) && watched;
    if (!watched && (wait < 0 || wait > RETRY_MS))
        wait = RETRY_MS;
    flood_rest();
    struct epoll_event events[64];
    bool signalled = false;
    int n = epoll_wait(epoll_fd, events, 64, wait < 0 || wait > 1000 ? 1000 : wait);
    for (int i = 0; i < n; i++) {
        struct source *src = events[i].data.ptr;
        if (src->kind == SRC_STDIN_FRAMES)
            wire_readable();
        else if (src->kind == SRC_SIGNALS)
            signalled = true;
        else if (src->kind == SRC_FILES)
            files_collect();
        else if (src->kind == SRC_SPOOL)
            spool_progress();
        else if (src->kind == SRC_DISK)
            disk_event();
        else if (src->kind == SRC_EGRESS || src->kind == SRC_EGRESS_LISTENER)
            egress_event(src, events[i].events);
        else if (src->kind != SRC_STDOUT_FRAMES)
            commands_event(src, events[i].events);
    }
    return signalled;
}

/* Everything that a round needs. */
void loop_init(void)
{
    static struct source files = {SRC_FILES, NULL, 0}, disk = {SRC_DISK, NULL, 0};
    if (getrandom(boot_id, sizeof boot_id, 0) != sizeof boot_id)
        die("getrandom");
    workspace_fd = open(workspace_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (workspace_fd < 0)
        die(workspace_path);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die("epoll");
    wire_init();
    files_init();
    disk_init();
    watch_always(files_eventfd(), &files);
    watch_always(disk_eventfd(), &disk);
}

/* One arena for all threads, and what is large goes back to the kernel at once: idle, we are to be small. */
static void frugal_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    mallopt(M_TRIM_THRESHOLD, 64 << 10);
}

/* Code that only the start needed leaves our memory; what is used again comes back from the file. */
static void forget_start(void)
{
    extern char __executable_start, etext;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)&__executable_start & ~(page - 1);
    madvise((void *)from, ((uintptr_t)&etext - from) & ~(page - 1), MADV_DONTNEED);
}

/*
 * No core files, and no program of the host for a crash: where kernel.core_pattern is a pipe, a limit of 1 is the only
 * one that the kernel obeys. As a file, a dump that may have one byte is not begun. A container comes with this limit.
 */
static void no_core_dumps(void)
{
    struct rlimit one = {1, 1}, none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &one) < 0)
        setrlimit(RLIMIT_CORE, &none);
}

int main(int argc, char **argv)
{
    frugal_memory();
    standard_descriptors();
    oom_score_open();
    /* Before anything else runs: nobody of the same uid may look into us, trace us or take our descriptors. */
    prctl(PR_SET_DUMPABLE, 0);
    is_init = getpid() == 1;
    prctl(PR_SET_NAME, "sbxd");
    read_arguments(argc, argv);
    no_core_dumps();
    int signal_fd = signals_init();
    if (!is_init)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    oom_open();
    loop_init();
    static struct source signals = {SRC_SIGNALS, NULL, 0};
    if (signal_fd < 0)
        die("signalfd");
    watch_always(signal_fd, &signals);
    forget_start();
    for (;;) {
        uint64_t now = now_us() / 1000;
        if (told_to_end || lease_over(now) || (wire_ended && !is_init))
            finish();
        if (loop_round(now))
            read_signals(signal_fd);
    }
}
