/*
 * START: reads the request (in pieces if longer than a frame), makes the pipes or the terminal, and
 * forks the shim. A known id is attached to instead. A command whose output cannot be polled does
 * not start.
 */
#include "commands.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../disk/disk.h"

void send_start_failed(uint32_t channel, int error, int stage)
{
    uint8_t p[8];
    put32(p, (uint32_t)error);
    put32(p + 4, (uint32_t)stage);
    frame_out(T_START_FAILED, 0, channel, p, sizeof p);
}

/* Our end does not block; the command's end does, as programs expect. */
static bool make_pipe(int *read_end, int *write_end, int *ours)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return false;
    *read_end = p[0];
    *write_end = p[1];
    fcntl(*ours, F_SETFL, O_NONBLOCK);
    return true;
}

static void close_all(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

enum { OUT, ERR, IN, CTL, SLAVE, THEIR_OUT, THEIR_ERR, THEIR_IN, THEIR_CTL, ENDS };

static bool make_pipes(const struct request *q, int fd[ENDS])
{
    return make_pipe(&fd[OUT], &fd[THEIR_OUT], &fd[OUT]) &&
           (q->flags & START_MERGE || make_pipe(&fd[ERR], &fd[THEIR_ERR], &fd[ERR])) &&
           (!(q->flags & START_STDIN) || make_pipe(&fd[THEIR_IN], &fd[IN], &fd[IN]));
}

/* One terminal for all three. Each end that is closed separately has a descriptor of its own. */
static bool make_terminal(const struct request *q, int fd[ENDS])
{
    return terminal_open(q->rows, q->columns, &fd[OUT], &fd[THEIR_OUT]) && (fd[IN] = fcntl(fd[OUT], F_DUPFD_CLOEXEC, 0)) >= 0 &&
           (fd[SLAVE] = fcntl(fd[THEIR_OUT], F_DUPFD_CLOEXEC, 0)) >= 0;
}

static bool poll_all(struct command *c, const int fd[ENDS])
{
    return poll_add(fd[CTL], EPOLLIN, &c->ctl_src) && poll_add(fd[OUT], EPOLLIN, &c->out[0].src) &&
           (fd[ERR] < 0 || poll_add(fd[ERR], EPOLLIN, &c->out[1].src));
}

static int spawn(struct command *c, const struct request *q)
{
    static int null_fd = -1;
    int fd[ENDS], pair[2];
    memset(fd, -1, sizeof fd);
    bool merge = q->flags & START_MERGE || q->terminal, input = q->flags & START_STDIN;
    if (null_fd < 0)
        null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd < 0 || !(q->terminal ? make_terminal(q, fd) : make_pipes(q, fd)) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        int error = errno;
        close_all(fd, ENDS);
        return error;
    }
    fd[CTL] = pair[0];
    fd[THEIR_CTL] = pair[1];
    /* First, because it can fail: a command whose output is not polled must not start. */
    if (!poll_all(c, fd)) {
        int error = errno;
        close_all(fd, ENDS);
        return error;
    }
    struct shim_job job = {
        .limits = &q->limits,
        .argv = q->argv,
        .envp = q->envp,
        .workspace = workspace_path,
        .cwd = q->cwd[0] ? q->cwd : NULL,
        .in = q->terminal ? fd[THEIR_OUT] : input ? fd[THEIR_IN] : null_fd,
        .out = fd[THEIR_OUT],
        .err = merge ? fd[THEIR_OUT] : fd[THEIR_ERR],
        .ctl = fd[THEIR_CTL],
        .capped = c->capped,
        .may_trace = q->may_trace,
        .terminal = q->terminal,
        .memory = c->session.memory,
        .cwd_may_fail = q->cwd_may_fail,
    };
    oom_raise_score(true);
    pid_t pid = fork();
    if (pid == 0)
        shim_run(&job);
    int error = errno;
    oom_raise_score(false);
    close_all(fd + THEIR_OUT, ENDS - THEIR_OUT);
    if (pid < 0) {
        close_all(fd, THEIR_OUT);
        return error;
    }
    c->shim = pid;
    c->ctl = fd[CTL];
    c->out[0].fd = fd[OUT];
    c->out[1].fd = fd[ERR];
    c->in.fd = fd[IN];
    c->slave = fd[SLAVE];
    c->terminal = q->terminal;
    for (int i = 0; i < 2; i++)
        c->out[i].polled = c->out[i].fd >= 0;
    return 0;
}

static void start(uint32_t channel, struct request *q)
{
    struct command *c = command_by_id(q->id);
    if (c && c->asked != q->asked) {
        send_start_failed(channel, EEXIST, STAGE_REQUEST);
        return;
    }
    if (c) {
        /*
         * At most once: the same id again is an attach. Acknowledged bytes are discarded already.
         */
        command_reattach(c, channel, (uint64_t[]){c->out[0].ring.base, c->out[1].ring.base}, q->limit);
        return;
    }
    if (remembered_answer(channel, q->id, &q->asked))
        return;
    if (command_count(false) >= MAX_COMMANDS)
        command_forget_abandoned();
    if (reset_running() || command_count(true) >= MAX_RUNNING || command_count(false) >= MAX_COMMANDS) {
        send_start_failed(channel, EBUSY, STAGE_LIMIT);
        return;
    }
    if (q->background && jobs_full()) {
        send_start_failed(channel, EUSERS, STAGE_LIMIT);
        return;
    }
    c = calloc(1, sizeof *c);
    if (!c) {
        send_start_failed(channel, ENOMEM, STAGE_LIMIT);
        return;
    }
    memcpy(c->id, q->id, ID_BYTES);
    c->asked = q->asked;
    c->slave = c->session.memory = -1;
    c->ctl_src = (struct source){.ready = command_ctl_ready, .owner = c};
    c->in.src = (struct source){.ready = command_in_ready, .owner = c};
    for (int i = 0; i < 2; i++)
        c->out[i].src = (struct source){.ready = command_out_ready, .owner = c, .which = i};
    c->ooms = oom_kills();
    c->capped = disk_no_growth();
    c->started_us = now_us();
    c->grace_ms = q->grace_ms;
    c->timeout_ms = q->timeout_ms ? c->started_us / 1000 + q->timeout_ms : 0;
    c->spool = (struct spool){.wanted = q->spooled, .after = q->spool_after, .max = q->spool_max};
    c->policy = q->policy;
    job_begin(c, q);
    int error = session_begin(c, q);
    if (!error)
        error = spawn(c, q);
    if (error) {
        session_close(&c->session);
        free(c);
        send_start_failed(channel, error, STAGE_FORK);
        return;
    }
    command_attach(c, channel, (uint64_t[]){0, 0}, q->limit);
    c->next = commands;
    commands = c;
}

/* A request longer than a frame arrives in pieces, one request at a time. */
static struct buf pieces;
static uint32_t pieces_channel;

/* A new controller reuses channel numbers: it must not complete a request of the former one. */
void start_forget_pieces(void) { pieces.len = 0; }

void commands_start(const struct frame *f)
{
    uint32_t channel = f->channel;
    const uint8_t *p = f->p;
    size_t n = f->n;
    if (pieces.len && pieces_channel != channel)
        pieces.len = 0;
    if (f->flags & F_MORE || pieces.len) {
        pieces_channel = channel;
        if (pieces.len + n > START_MAX) {
            pieces.len = 0;
            send_start_failed(channel, E2BIG, STAGE_REQUEST);
            return;
        }
        buf_bytes(&pieces, p, n);
        if (f->flags & F_MORE)
            return;
        p = pieces.p;
        n = pieces.len;
        pieces.len = 0;
    }
    struct buf whole = {0};
    if (p == pieces.p) { /* freed at the end: long requests are rare */
        whole = pieces;
        pieces = (struct buf){0};
    }
    struct request q = {0};
    int error = 0;
    if (n >= ID_BYTES && memcmp(p, boot_id, ID_BYTES) != 0)
        send_start_failed(channel, ESTALE, STAGE_BOOT);
    else if ((error = request_read(&q, p, n)))
        send_start_failed(channel, error, STAGE_REQUEST);
    else
        start(channel, &q);
    request_forget(&q);
    free(whole.p);
}
