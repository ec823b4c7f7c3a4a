/*
 * libFuzzer over the whole supervisor in one process: real frames through the real parser,
 * dispatch, rings, files, egress and ports. Only what would leave this process is simulated: fork returns
 * a number and the fuzzer acts as the shim and its command, the clock stands still between
 * operations, no process is signalled, listeners get a free port.
 *
 * An input is a list of operations, see `operate`; packages/sandbox/test/sbxd/fuzz-seeds.ts writes
 * the first ones.
 */
#include "../src/commands/commands.h"
#include "../src/loop.h"
#include "../src/sessions/sessions.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void supervisor_init(void); /* main.c */

#define FIRST_PID 100000000 /* above every real one */
#define MOST_PEERS 64

static int to_sbxd, from_sbxd;
static uint64_t clock_us = 1000000;
static uint32_t header_start, payload_start;

/* ---- what is played -------------------------------------------------------------------------- */

/* The far ends of what spawn() makes: where the shim and the command would be. */
struct peer {
    int ctl;
    int out[2];
    pid_t pid;
};
static struct peer peers[MOST_PEERS];
static size_t peer_count;
static struct peer next_peer = {-1, {-1, -1}, 0};
static pid_t last_pid = FIRST_PID, dead[MOST_PEERS];
static size_t dead_count;
static uint16_t port;

static void close_peer(struct peer *p)
{
    int *fds[] = {&p->ctl, &p->out[0], &p->out[1]};
    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

static int copy_of(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }

uint64_t __wrap_now_us(void);
uint64_t __wrap_now_us(void) { return clock_us; }

void __wrap_die(const char *what);
void __wrap_die(const char *what)
{
    perror(what);
    abort();
}

int __real_pipe2(int p[2], int flags);
int __wrap_pipe2(int p[2], int flags);
int __wrap_pipe2(int p[2], int flags)
{
    if (__real_pipe2(p, flags) < 0)
        return -1;
    int *out = next_peer.out[0] < 0 ? &next_peer.out[0] : &next_peer.out[1];
    if (*out < 0) {
        *out = copy_of(p[1]);
        fcntl(*out, F_SETFL, O_NONBLOCK);
    }
    return 0;
}

int __real_socketpair(int family, int type, int protocol, int p[2]);
int __wrap_socketpair(int family, int type, int protocol, int p[2]);
int __wrap_socketpair(int family, int type, int protocol, int p[2])
{
    if (__real_socketpair(family, type, protocol, p) < 0)
        return -1;
    next_peer.ctl = copy_of(p[1]);
    return 0;
}

pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    if (peer_count == MOST_PEERS) {
        close_peer(&next_peer);
        errno = EAGAIN;
        return -1;
    }
    next_peer.pid = ++last_pid;
    peers[peer_count++] = next_peer;
    next_peer = (struct peer){-1, {-1, -1}, 0};
    return last_pid;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    (void)pid;
    (void)options;
    if (!dead_count)
        return 0;
    if (status)
        *status = 0;
    return dead[--dead_count];
}

int __wrap_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig)
{
    (void)sig;
    for (size_t i = 0; i < peer_count; i++)
        if (peers[i].pid == pid && peers[i].ctl >= 0 && dead_count < MOST_PEERS) {
            close_peer(&peers[i]);
            dead[dead_count++] = pid;
        }
    return 0;
}

size_t __wrap_proc_kill_tree(pid_t root, const pid_t *except, size_t excepts);
size_t __wrap_proc_kill_tree(pid_t root, const pid_t *except, size_t excepts)
{
    (void)root, (void)except, (void)excepts;
    return 0;
}

int __real_epoll_wait(int fd, struct epoll_event *events, int most, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
    (void)ms;
    return __real_epoll_wait(fd, events, most, 0);
}

/* The clock stands still, so a flood would never end. */
int __wrap_usleep(useconds_t us);
int __wrap_usleep(useconds_t us)
{
    (void)us;
    return 0;
}

int __real_bind(int fd, const struct sockaddr *at, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t length)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof any;
    (void)at, (void)length;
    if (__real_bind(fd, (struct sockaddr *)&any, n) < 0 || getsockname(fd, (struct sockaddr *)&any, &n) < 0)
        return -1;
    port = any.sin_port;
    return 0;
}

/* Only our own listener exists on this machine. */
int __real_connect(int fd, const struct sockaddr *to, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t length)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port};
    (void)length;
    if (port && to->sa_family == AF_INET)
        return __real_connect(fd, (struct sockaddr *)&at, sizeof at);
    errno = ECONNREFUSED;
    return -1;
}

/* ---- one input ------------------------------------------------------------------------------- */

static void drain_output(void)
{
    static uint8_t sink[1 << 20];
    while (read(from_sbxd, sink, sizeof sink) > 0)
        ;
}

static void run_round(void) { loop_round(clock_us / 1000); }

static void send_bytes(const uint8_t *p, size_t n)
{
    for (int patience = 0; n && patience < 64; patience++) {
        ssize_t w = write(to_sbxd, p, n);
        if (w > 0) {
            p += w;
            n -= (size_t)w;
        } else {
            drain_output();
        }
        run_round();
    }
}

static void send_frame(uint8_t type, uint16_t flags, uint32_t channel, const uint8_t *payload, uint32_t n, bool hello)
{
    static uint8_t frame[HEADER_BYTES + MAX_PAYLOAD + CRC_BYTES];
    frame[0] = FRAME_MAGIC;
    frame[1] = type;
    put16(frame + 2, flags);
    put32(frame + 4, channel);
    put32(frame + 8, n);
    put32(frame + 12, crc32c(hello ? HEADER_CRC_START : header_start, frame, 12));
    if (n)
        memcpy(frame + HEADER_BYTES, payload, n);
    put32(frame + HEADER_BYTES + n, crc32c(hello ? HELLO_CRC_START : payload_start, payload, n));
    send_bytes(frame, HEADER_BYTES + n + CRC_BYTES);
}

static void send_hello(uint8_t seed)
{
    static const uint8_t zeros[MAX_PAYLOAD + 64], key[KEY_BYTES] = {1};
    uint8_t text[16 + NONCE_BYTES + 8] = "sandlot-sbxd-1", payload[10 + NONCE_BYTES + 32 + KEY_BYTES];
    memset(text + 16, seed | 1, NONCE_BYTES);
    put64(text + 16 + NONCE_BYTES, 1);
    put16(payload, PROTOCOL_VERSION);
    put64(payload + 2, 1);
    memcpy(payload + 10, text + 16, NONCE_BYTES);
    hmac_sha256(key, text, sizeof text, payload + 10 + NONCE_BYTES);
    memcpy(payload + 10 + NONCE_BYTES + 32, key, KEY_BYTES);
    drain_output();
    send_bytes(zeros, sizeof zeros);
    send_frame(T_HELLO, F_INSTALL, 0, payload, sizeof payload, true);
    payload_start = get32(text + 16) | 1;
    header_start = get32(text + 20) | 1;
}

static int connect_inside(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)!__real_connect(fd, (struct sockaddr *)&at, sizeof at);
    return fd;
}

enum { OP_FRAME, OP_RAW, OP_REPORT, OP_PRINT, OP_DIE, OP_TIME, OP_HEAR, OP_HELLO, OP_CONNECT, OP_REAP, OP_KEPT, OPS };

/* One operation; `r` is what is left of the input. */
static void operate(struct reader *r)
{
    static uint8_t text[MAX_PAYLOAD];
    static int inside = -1;
    uint8_t op = rd8(r) % OPS, which = rd8(r);
    struct peer *p = peer_count ? &peers[which % peer_count] : NULL;
    uint32_t n = 0;
    const uint8_t *bytes = NULL;
    if (op == OP_FRAME || op == OP_RAW || op == OP_REPORT || op == OP_KEPT || (op == OP_CONNECT && which & 1)) {
        n = rd16(r);
        n = n < r->left ? n : (uint32_t)r->left;
        bytes = rdn(r, n);
    }
    switch (op) {
    case OP_FRAME:
        /* The first bytes: flags and channel. */
        if (n >= 2)
            send_frame(which, bytes[0], bytes[1] & 0x80 ? 0x80000000u | (bytes[1] & 7) : bytes[1] & 7u, bytes + 2, n - 2, false);
        break;
    case OP_RAW:
        send_bytes(bytes, n);
        break;
    case OP_REPORT:
        if (p && p->ctl >= 0 && n) {
            struct shim_report report = {.event = bytes[0]};
            memcpy((uint8_t *)&report + 4, bytes + 1, n - 1 < sizeof report - 4 ? n - 1 : sizeof report - 4);
            (void)!send(p->ctl, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        break;
    case OP_PRINT: {
        uint8_t err = rd8(r);
        n = (uint32_t)rd16(r);
        if (p && p->out[err & 1] >= 0)
            (void)!write(p->out[err & 1], text, n);
        break;
    }
    case OP_DIE:
        if (p)
            __wrap_kill(p->pid, 9);
        break;
    case OP_TIME:
        clock_us += (uint64_t)which * which * 1000;
        break;
    case OP_HEAR:
        drain_output();
        break;
    case OP_HELLO:
        send_hello(which);
        break;
    case OP_CONNECT:
        if (inside >= 0 && n)
            (void)!send(inside, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        else {
            if (inside >= 0)
                close(inside);
            inside = port ? connect_inside() : -1;
        }
        break;
    case OP_KEPT:
        sessions_read(bytes, n);
        break;
    default:
        commands_reap();
    }
    run_round();
}

/* Whatever this input has left does not reach the next one. */
static void clear(void)
{
    for (size_t i = 0; i < peer_count; i++)
        close_peer(&peers[i]);
    close_peer(&next_peer);
    peer_count = dead_count = 0;
    for (struct command *c = commands; c; c = c->next) {
        c->shim = 0;
        if (!c->dead)
            command_close(c);
        c->dead = true;
    }
    send_hello(0);
    drain_output();
    run_round();
    commands_free_dead();
    sessions_forget();
    remembered_forget();
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char folder[] = "/tmp/sbxd-fuzz-XXXXXX";
    int in[2], out[2];
    (void)argc, (void)argv;
    const char *given = getenv("SBXD_FUZZ_WORKSPACE");
    workspace_path = given ? given : mkdtemp(folder);
    session_library = "/dev/null";
    sigfillset(&all_signals);
    signal(SIGPIPE, SIG_IGN); /* as main() does */
    if (!workspace_path || __real_pipe2(in, O_CLOEXEC) < 0 || __real_pipe2(out, O_CLOEXEC) < 0)
        __wrap_die("fuzz");
    to_sbxd = in[1];
    from_sbxd = out[0];
    fcntl(to_sbxd, F_SETFL, O_NONBLOCK);
    fcntl(from_sbxd, F_SETFL, O_NONBLOCK);
    dup2(in[0], 0);
    dup2(out[1], 1);
    supervisor_init();
    send_hello(0);
    /* Names in the seeds. */
    memset(boot_id, 0x42, sizeof boot_id);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = {data, size, false};
    for (int i = 0; r.left && !r.bad && i < 200; i++)
        operate(&r);
    clear();
    return 0;
}
