/* START: read the request, make the pipes, fork the shim. Nothing runs unless every field was understood. */
#include "command.h"
#include "request.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

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
    q->given = calloc(count + 1, sizeof *q->given);
    if (!q->given)
        return false;
    memcpy(q->envp, environ, own * sizeof *environ);
    size_t n = own;
    for (uint32_t i = 0; i < count; i++) {
        char *entry = take_text(r, at);
        size_t name = entry ? name_length(entry) : 0;
        if (!entry || name == 0 || entry[name] != '=')
            return false;
        q->given[i] = entry;
        size_t k = 0;
        while (k < n && !(name_length(q->envp[k]) == name && memcmp(q->envp[k], entry, name) == 0))
            k++;
        q->envp[k] = entry;
        if (k == n)
            n++;
    }
    return true;
}

static int parse_options(struct request *q, struct reader *r)
{
    uint64_t seen[4] = {0};
    while (r->left && !r->bad) {
        uint8_t tag = rd8(r);
        uint16_t length = rd16(r);
        const uint8_t *p = rdn(r, length);
        if (!p)
            return EINVAL;
        struct reader value = {p, length, false};
        bool again = seen[tag / 64] >> tag % 64 & 1;
        seen[tag / 64] |= 1ull << tag % 64;
        int error = again && !OPT_REPEATS(tag) ? EINVAL : start_option(q, tag, &value);
        if (error || value.bad || value.left)
            return error ? error : EINVAL;
    }
    return r->bad ? EINVAL : 0;
}

static bool parse_program(struct request *q, struct reader *from, size_t n)
{
    struct reader r = *from;
    q->id = rdn(&r, ID_BYTES);
    q->flags = rd16(&r);
    q->limit[0] = rd64(&r);
    q->limit[1] = rd64(&r);
    if (r.bad || q->flags & ~START_KNOWN)
        return false;

    /* Each string takes four bytes of length on the wire and one of end mark here, so n is enough for all. */
    char *at = q->text = malloc(n + 16);
    if (!at)
        return false;
    q->cwd = take_text(&r, &at);
    uint32_t argc = rd32(&r);
    if (r.bad || argc == 0 || argc > r.left / 4 || (q->flags & START_SHELL && argc != 1))
        return false;
    bool shell = q->flags & START_SHELL;
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
    if (r.bad || envc > r.left / 4 || !merge_env(q, &r, &at, envc) || r.bad)
        return false;
    *from = r;
    return true;
}

/* 0 or the errno that the command is refused with. */
static int parse(struct request *q, const uint8_t *p, size_t n)
{
    struct reader r = {p, n, false};
    if (!rdn(&r, ID_BYTES)) /* the boot id, checked by the caller */
        return EINVAL;
    return parse_program(q, &r, n) ? parse_options(q, &r) : EINVAL;
}

static void forget(struct request *q)
{
    free(q->argv);
    free(q->envp);
    free(q->given);
    free(q->session_text);
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

enum { OUT, ERR, IN, CTL, SLAVE, THEIR_OUT, THEIR_ERR, THEIR_IN, THEIR_CTL, ENDS };

static bool make_pipes(const struct request *q, int fd[ENDS])
{
    return make_pipe(&fd[OUT], &fd[THEIR_OUT], &fd[OUT]) &&
           (q->flags & START_MERGE || make_pipe(&fd[ERR], &fd[THEIR_ERR], &fd[ERR])) &&
           (!(q->flags & START_STDIN) || make_pipe(&fd[THEIR_IN], &fd[IN], &fd[IN]));
}

/* One terminal is all three. Each end that we close by itself is a descriptor of its own. */
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
    /* First, because it may be refused: a command that nobody hears must not begin. */
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
        .terminal = q->terminal,
        .memory = c->session.memory,
        .cwd_may_fail = q->cwd_may_fail,
    };
    oom_offer(true);
    pid_t pid = fork();
    if (pid == 0)
        shim_run(&job);
    int error = errno;
    oom_offer(false);
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
    if (q->background && jobs_full()) {
        start_failed(channel, EUSERS, STAGE_LIMIT);
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
    c->spool = (struct spool){.wanted = q->spooled, .after = q->spool_after, .max = q->spool_max};
    c->policy = q->policy;
    job_begin(c, q);
    int error = session_begin(c, q);
    if (!error)
        error = spawn(c, q);
    if (error) {
        session_close(&c->session);
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
    struct buf whole = {0};
    if (p == pieces.p) { /* given back at the end: hardly any request is so long */
        whole = pieces;
        pieces = (struct buf){0};
    }
    struct request q = {0};
    int error = 0;
    if (n >= ID_BYTES && memcmp(p, boot_id, ID_BYTES) != 0)
        start_failed(channel, ESTALE, STAGE_BOOT);
    else if ((error = parse(&q, p, n)))
        start_failed(channel, error, STAGE_REQUEST);
    else
        start(channel, &q);
    forget(&q);
    free(whole.p);
}
