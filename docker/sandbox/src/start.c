/* START: read the request, make the pipes, fork the shim. Nothing runs unless every field was understood. */
#include "command.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

struct request {
    const uint8_t *id;
    uint16_t options;
    uint32_t timeout_ms, grace_ms, spool_after, spool_max;
    uint64_t limit[2];
    char *cwd;
    char **argv;
    char **envp;
    char *text; /* the bytes that all of these point into */
};

void start_failed(uint32_t channel, int error, int stage)
{
    uint8_t p[8];
    put32(p, (uint32_t)error);
    put32(p + 4, (uint32_t)stage);
    frame_out(T_START_FAILED, 0, channel, p, sizeof p);
}

/* A length-prefixed string, copied with its end marked; NULL when it is cut short or contains NUL. */
static char *take_text(struct reader *r, char **at)
{
    uint32_t n = rd32(r);
    const uint8_t *p = rdn(r, n);
    if (!p || memchr(p, 0, n)) {
        r->bad = true;
        return NULL;
    }
    char *text = *at;
    memcpy(text, p, n);
    text[n] = 0;
    *at += n + 1;
    return text;
}

static size_t name_length(const char *assignment) { return strcspn(assignment, "="); }

/* Our own environment, with the request's assignments in place of those of the same name. */
static bool merge_env(struct request *q, struct reader *r, char **at, uint32_t count)
{
    size_t own = 0;
    while (environ[own])
        own++;
    q->envp = calloc(own + count + 1, sizeof *q->envp);
    if (!q->envp)
        return false;
    memcpy(q->envp, environ, own * sizeof *environ);
    size_t n = own;
    for (uint32_t i = 0; i < count; i++) {
        char *entry = take_text(r, at);
        size_t name = entry ? name_length(entry) : 0;
        if (!entry || name == 0 || entry[name] != '=')
            return false;
        size_t k = 0;
        while (k < n && !(name_length(q->envp[k]) == name && memcmp(q->envp[k], entry, name) == 0))
            k++;
        q->envp[k] = entry;
        if (k == n)
            n++;
    }
    return true;
}

static bool parse(struct request *q, const uint8_t *p, size_t n)
{
    struct reader r = {p, n, false};
    if (!rdn(&r, ID_BYTES)) /* the boot id, checked by the caller */
        return false;
    q->id = rdn(&r, ID_BYTES);
    q->options = rd16(&r);
    q->timeout_ms = rd32(&r);
    q->grace_ms = rd32(&r);
    q->limit[0] = rd64(&r);
    q->limit[1] = rd64(&r);
    q->spool_after = rd32(&r);
    q->spool_max = rd32(&r);
    if (r.bad || q->options & ~START_KNOWN || (q->options & START_SPOOL && q->spool_after > SPOOL_AFTER_MAX))
        return false;

    /* Each string takes four bytes of length on the wire and one of end mark here, so n is enough for all. */
    char *at = q->text = malloc(n + 16);
    if (!at)
        return false;
    q->cwd = take_text(&r, &at);
    uint32_t argc = rd32(&r);
    if (r.bad || argc == 0 || argc > r.left / 4 || (q->options & START_SHELL && argc != 1))
        return false;
    bool shell = q->options & START_SHELL;
    q->argv = calloc(argc + (shell ? 3 : 1), sizeof *q->argv);
    if (!q->argv)
        return false;
    static char bash[] = "/bin/bash", dash_c[] = "-c";
    if (shell) {
        q->argv[0] = bash;
        q->argv[1] = dash_c;
    }
    for (uint32_t i = 0; i < argc; i++)
        q->argv[i + (shell ? 2 : 0)] = take_text(&r, &at);
    uint32_t envc = rd32(&r);
    return !r.bad && envc <= r.left / 4 && merge_env(q, &r, &at, envc) && !r.bad;
}

static void forget(struct request *q)
{
    free(q->argv);
    free(q->envp);
    free(q->text);
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

static int spawn(struct command *c, const struct request *q)
{
    enum { OUT, ERR, IN, CTL, THEIR_OUT, THEIR_ERR, THEIR_IN, THEIR_CTL, N };
    static int null_fd = -1;
    int fd[N], pair[2];
    memset(fd, -1, sizeof fd);
    bool merge = q->options & START_MERGE, input = q->options & START_STDIN;
    if (null_fd < 0)
        null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd < 0 || !make_pipe(&fd[OUT], &fd[THEIR_OUT], &fd[OUT]) || (!merge && !make_pipe(&fd[ERR], &fd[THEIR_ERR], &fd[ERR])) ||
        (input && !make_pipe(&fd[THEIR_IN], &fd[IN], &fd[IN])) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        int error = errno;
        close_all(fd, N);
        return error;
    }
    fd[CTL] = pair[0];
    fd[THEIR_CTL] = pair[1];
    struct shim_job job = {
        .argv = q->argv,
        .envp = q->envp,
        .workspace = workspace_path,
        .cwd = q->cwd[0] ? q->cwd : NULL,
        .in = input ? fd[THEIR_IN] : null_fd,
        .out = fd[THEIR_OUT],
        .err = merge ? fd[THEIR_OUT] : fd[THEIR_ERR],
        .ctl = fd[THEIR_CTL],
        .capped = c->capped,
    };
    oom_offer(true);
    pid_t pid = fork();
    if (pid == 0)
        shim_run(&job);
    int error = errno;
    oom_offer(false);
    close_all(fd + THEIR_OUT, N - THEIR_OUT);
    if (pid < 0) {
        close_all(fd, THEIR_OUT);
        return error;
    }
    c->shim = pid;
    c->ctl = fd[CTL];
    c->out[0].fd = fd[OUT];
    c->out[1].fd = fd[ERR];
    c->in.fd = fd[IN];
    poll_add(c->ctl, EPOLLIN, &c->ctl_src);
    for (int i = 0; i < 2; i++)
        if (c->out[i].fd >= 0)
            c->out[i].polled = poll_add(c->out[i].fd, EPOLLIN, &c->out[i].src);
    return 0;
}

static void start(uint32_t channel, const struct request *q)
{
    struct command *c = command_by_id(q->id);
    if (c) {
        /* At most once: the same id again is an attach. Bytes already acknowledged are gone. */
        command_reattach(c, channel, (uint64_t[]){c->out[0].ring.base, c->out[1].ring.base}, q->limit);
        return;
    }
    if (command_count(false) >= MAX_COMMANDS)
        command_forget_abandoned();
    if (reset_running() || command_count(true) >= MAX_RUNNING || command_count(false) >= MAX_COMMANDS) {
        start_failed(channel, EBUSY, STAGE_LIMIT);
        return;
    }
    c = calloc(1, sizeof *c);
    if (!c) {
        start_failed(channel, ENOMEM, STAGE_LIMIT);
        return;
    }
    memcpy(c->id, q->id, ID_BYTES);
    c->slave = c->session.memory = -1;
    c->ctl_src = (struct source){SRC_CMD_CTL, c, 0};
    c->in.src = (struct source){SRC_CMD_IN, c, 0};
    for (int i = 0; i < 2; i++)
        c->out[i].src = (struct source){SRC_CMD_OUT, c, i};
    c->ooms = oom_kills();
    c->capped = disk_no_growth();
    c->started_us = now_us();
    c->grace_ms = q->grace_ms;
    c->timeout_ms = q->timeout_ms ? c->started_us / 1000 + q->timeout_ms : 0;
    c->spool = (struct spool){.wanted = q->options & START_SPOOL, .fd = -1, .after = q->spool_after, .max = q->spool_max};
    int error = spawn(c, q);
    if (error) {
        free(c);
        start_failed(channel, error, STAGE_FORK);
        return;
    }
    command_attach(c, channel, (uint64_t[]){0, 0}, q->limit);
    c->next = commands;
    commands = c;
}

/* A request longer than a frame comes in pieces, one request at a time. */
static struct buf pieces;
static uint32_t pieces_channel;

/* A new controller uses the same channel numbers: what the last one began must not be completed by it. */
void starts_forget(void) { pieces.len = 0; }

void commands_start(uint16_t flags, uint32_t channel, const uint8_t *p, size_t n)
{
    if (pieces.len && pieces_channel != channel)
        pieces.len = 0;
    if (flags & F_MORE || pieces.len) {
        pieces_channel = channel;
        if (pieces.len + n > START_MAX) {
            pieces.len = 0;
            start_failed(channel, E2BIG, STAGE_REQUEST);
            return;
        }
        buf_bytes(&pieces, p, n);
        if (flags & F_MORE)
            return;
        p = pieces.p;
        n = pieces.len;
        pieces.len = 0;
    }
    struct request q = {0};
    if (n >= ID_BYTES && memcmp(p, boot_id, ID_BYTES) != 0)
        start_failed(channel, ESTALE, STAGE_BOOT);
    else if (!parse(&q, p, n))
        start_failed(channel, EINVAL, STAGE_REQUEST);
    else
        start(channel, &q);
    forget(&q);
}
