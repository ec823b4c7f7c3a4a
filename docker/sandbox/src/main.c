/*
 * sbxd: runs the commands of one sandbox. PID 1 in a container, or a plain child in the
 * local-process backend. Speaks the protocol of wire/wire.h on stdin and stdout, and nothing else;
 * stderr carries one error line before it exits. In a Pod it speaks on connections instead, and two
 * more programs are in the same file: pod/.
 */
#include "loop.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/commands.h"
#include "disk/disk.h"
#include "connections/connections.h"
#include "egress/egress.h"
#include "files/files.h"
#include "pod/pod.h"
#include "ports/ports.h"
#include "sessions/sessions.h"
#include "walls/walls.h"
#include "wire/wire.h"

/* ---- the handlers of frames ------------------------------------------------------------------ */

static const struct frame_handler handlers[] = {
    {T_STAT, disk_stat},
    {T_DISK_BUDGET, disk_budget},
    {T_START, commands_start},
    {T_ATTACH, commands_attach},
    {T_DATA, commands_data},
    {T_EOF, commands_eof},
    {T_CREDIT, commands_credit},
    {T_ACK, commands_ack},
    {T_SIGNAL, commands_signal},
    {T_CANCEL, commands_cancel},
    {T_RESIZE, commands_resize},
    {T_COMMANDS, commands_list},
    {T_RESET, commands_reset},
    {T_FILE_STAT, files_submit},
    {T_FILE_LIST, files_submit},
    {T_FILE_READ, files_submit},
    {T_FILE_WRITE, files_submit},
    {T_FILE_MKDIR, files_submit},
    {T_FILE_REMOVE, files_submit},
    {T_FILE_RENAME, files_submit},
    {T_FILE_RESOLVE, files_submit},
    {T_FILE_WATCH, files_submit},
    {T_PORT_CONNECT, ports_connect},
    {T_PORT_LIST, ports_list},
    {T_FILE_SNAPSHOT, files_submit},
    {T_FILE_CHANGES, files_submit},
    {T_EGRESS_LISTEN, egress_listen},
    {T_EGRESS_RESULT, egress_result},
    {T_CONNECTION_DATA, connection_data},
    {T_CONNECTION_CREDIT, connection_credit},
    {T_CONNECTION_EOF, connection_eof},
    {T_CONNECTION_CLOSE, connection_closed},
};

static void controller_changed(void)
{
    commands_detach_all();
    start_forget_pieces();
    reset_forget_requests();
    files_forget();
    disk_forget();
    connections_end(false);
    egress_forget();
}

static const struct wire_hooks hooks = {
    .controller_changed = controller_changed,
    .seal_installed = sessions_set_key,
    .describe = commands_describe,
    .has_data = commands_have_data,
    .next_data = commands_next_data,
};

/* Everything but arguments, signals and shutdown; fuzz/ starts with it as well. */
void supervisor_init(void);
void supervisor_init(void)
{
    wire_init(handlers, sizeof handlers / sizeof *handlers, &hooks);
    loop_init();
}

/* ---- arguments: in a container of Docker there are none -------------------------------------- */

static void read_arguments(int argc, char **argv)
{
    size_t tmps = 0;
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--listen") == 0) {
            listens = true;
            i--;
            continue;
        }
        if (i + 1 == argc) {
            errno = EINVAL;
            die(name);
        }
        if (strcmp(name, "--workspace") == 0)
            workspace_path = value;
        else if (strcmp(name, "--lease") == 0)
            lease_ms = strtoull(value, NULL, 10) * 1000;
        else if (strcmp(name, "--session-library") == 0)
            session_library = value;
        else if (strcmp(name, "--tmp") == 0 && tmps < 3)
            tmp_dirs[tmps++] = value;
        else if (!walls_argument(name, value)) {
            errno = EINVAL;
            die(name);
        }
    }
    if (is_init && !tmps) {
        tmp_dirs[0] = "/tmp";
        tmp_dirs[1] = "/dev/shm";
        tmp_dirs[2] = "/run";
        tmp_dirs[3] = "/dev/mqueue";
    }
}

/* ---- signals and the end --------------------------------------------------------------------- */

static bool signalled;
static bool end_requested;

static void wake_only(int sig) { (void)sig; }

/*
 * Two signals are read from a descriptor. (Unblocking them during the wait is not enough:
 * epoll_pwait delivers none as long as there is always an event.) Process 1 ignores signals from
 * inside without a handler, unless they are blocked: a blocked signal stays in the queue that all
 * processes of the uid share, until the commands have no room left in it. Elsewhere all are
 * blocked. Shims inherit the handler, so that SIGCHLD interrupts their wait.
 */
static int signals_init(void)
{
    sigset_t wanted;
    struct sigaction child = {.sa_handler = wake_only}, term = {.sa_handler = wake_only};
    sigfillset(&all_signals);
    sigprocmask(SIG_SETMASK, &all_signals, NULL);
    sigaction(SIGCHLD, &child, NULL);
    sigaction(SIGTERM, &term, NULL); /* or the kernel would drop it for process 1 */
    /*
     * gVisor ends its process 1 by the SIGPIPE of its own write. Not ignored: commands would
     * inherit that.
     */
    struct sigaction pipe = {.sa_handler = wake_only, .sa_flags = SA_RESTART};
    sigaction(SIGPIPE, &pipe, NULL);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    if (is_init)
        sigprocmask(SIG_SETMASK, &wanted, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Signals are handled after the round's other events. */
static void signal_ready(struct source *src, uint32_t events)
{
    (void)src, (void)events;
    signalled = true;
}

static void read_signals(int fd)
{
    struct signalfd_siginfo info;
    signalled = false;
    while (read(fd, &info, sizeof info) == sizeof info)
        /*
         * A sender outside the PID namespace has no pid here. A command's SIGTERM is ignored:
         * kill() shows its pid, and where the sender chooses the pid (sigqueue) or there is none
         * (F_SETSIG on a descriptor), the code differs.
         */
        if (info.ssi_signo == SIGTERM && (!is_init || (info.ssi_code == SI_USER && info.ssi_pid == 0)))
            end_requested = true;
    commands_reap();
}

/*
 * Shutdown. As PID 1 the kernel kills everything with us; elsewhere our descendants are killed
 * first.
 */
static _Noreturn void shut_down(void)
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

/*
 * Counts down without frames, in steps of at most a second, so that a pause of the container, in
 * which no time passes for sbxd, does not use it up.
 */
static bool lease_expired(uint64_t now_ms)
{
    static uint64_t left, last, last_frames;
    if (!last || frames_in != last_frames) {
        last_frames = frames_in;
        left = lease_ms;
    } else {
        uint64_t step = now_ms - last < 1000 ? now_ms - last : 1000;
        left = left > step ? left - step : 0;
    }
    last = now_ms;
    return lease_ms && left == 0;
}

/* ---- the start ------------------------------------------------------------------------------- */

/* Descriptors 0, 1 and 2 must be open, or a command's pipe would get such a number. */
static void standard_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            die("/dev/null");
    /* No descriptor that our parent left open reaches a command. */
    syscall(SYS_close_range, 3, ~0u, 0);
}

/*
 * One arena for all threads, and large blocks are returned to the kernel at once, for a small idle
 * size.
 */
static void limit_malloc(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    mallopt(M_TRIM_THRESHOLD, 64 << 10);
}

/* Releases pages of start-up code; they are read from the file again if needed. */
static void drop_start_pages(void)
{
    extern char __executable_start, etext;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)&__executable_start & ~(page - 1);
    madvise((void *)from, ((uintptr_t)&etext - from) & ~(page - 1), MADV_DONTNEED);
}

/*
 * No core files, and no program of the host for a crash: where kernel.core_pattern is a pipe, 1 is
 * the only limit that the kernel respects. As a file, a dump of one byte is not started. A
 * container starts with this limit.
 */
static void no_core_dumps(void)
{
    struct rlimit one = {1, 1}, none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &one) < 0)
        setrlimit(RLIMIT_CORE, &none);
}

/* The kubelet adds the address of the API server to every container. */
static void forget_cluster(void)
{
    static const char prefix[] = "KUBERNETES_";
    for (char **line = environ; *line;) {
        char *end = strchr(*line, '=');
        if (!end || strncmp(*line, prefix, sizeof prefix - 1) != 0) {
            line++;
            continue;
        }
        char name[end - *line + 1];
        memcpy(name, *line, sizeof name - 1);
        name[sizeof name - 1] = 0;
        unsetenv(name); /* moves the rest here */
    }
}

int main(int argc, char **argv)
{
    limit_malloc();
    standard_descriptors();
    if (argc == 2 && strcmp(argv[1], "relay") == 0)
        return relay();
    if (argc == 2 && strcmp(argv[1], "network-down") == 0)
        return network_down();
    if (argc == 3 && strcmp(argv[1], "network-down") == 0)
        return network_down() || make_home(argv[2]);
    oom_score_open();
    /* First: no process of the same uid can inspect or trace sbxd, or take its descriptors. */
    prctl(PR_SET_DUMPABLE, 0);
    is_init = getpid() == 1;
    prctl(PR_SET_NAME, "sbxd");
    read_arguments(argc, argv);
    no_core_dumps();
    walls_raise();
    int signal_fd = signals_init();
    if (!is_init)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    oom_open();
    supervisor_init();
    if (listens) {
        forget_cluster();
        listen_init();
    }
    static struct source signals = {.ready = signal_ready};
    if (signal_fd < 0)
        die("signalfd");
    loop_watch(signal_fd, &signals);
    drop_start_pages();
    for (;;) {
        uint64_t now = now_us() / 1000;
        if (end_requested || lease_expired(now) || (wire_ended && !is_init))
            shut_down();
        loop_round(now);
        if (signalled)
            read_signals(signal_fd);
    }
}
