/* The life of a command, from its shim's first report to the acknowledged EXIT. */
#include "command.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct command *commands;

struct command *command_by_id(const uint8_t *id)
{
    for (struct command *c = commands; c; c = c->next)
        if (!c->dead && memcmp(c->id, id, ID_BYTES) == 0)
            return c;
    return NULL;
}

struct command *command_by_channel(uint32_t channel)
{
    for (struct command *c = commands; c; c = c->next)
        if (!c->dead && c->attached && c->channel == channel)
            return c;
    return NULL;
}

size_t command_count(bool running_only)
{
    size_t n = 0;
    for (struct command *c = commands; c; c = c->next)
        n += !c->dead && !(running_only && c->state == ENDED);
    return n;
}

/* ---- who listens ------------------------------------------------------------------------------------------ */

void command_attach(struct command *c, uint32_t channel, const uint64_t from[2], const uint64_t limit[2])
{
    if (c->attached)
        frame_out(T_DETACHED, 0, c->channel, NULL, 0);
    c->attached = true;
    c->channel = channel;
    for (int i = 0; i < 2; i++) {
        struct stream *s = &c->out[i];
        s->sent = from[i] < s->ring.base ? s->ring.base : from[i];
        s->limit = limit[i];
    }
}

void command_started(struct command *c, bool existing)
{
    struct buf b = {0};
    buf8(&b, (uint8_t)(existing | c->session.moved << 1));
    buf32(&b, (uint32_t)c->main);
    buf64(&b, c->out[0].sent);
    buf64(&b, c->out[1].sent);
    buf64(&b, c->in.ring.end);
    c->in.credited = c->in.ring.base + STDIN_WINDOW;
    buf64(&b, c->in.credited);
    frame_out(T_STARTED, 0, c->channel, b.p, b.len);
    free(b.p);
}

void commands_detach_all(void)
{
    for (struct command *c = commands; c; c = c->next)
        c->attached = false;
}

void commands_describe(struct buf *b)
{
    buf32(b, (uint32_t)command_count(false));
    for (struct command *c = commands; c; c = c->next) {
        if (c->dead)
            continue;
        buf_bytes(b, c->id, ID_BYTES);
        buf8(b, c->state == ENDED);
        buf64(b, c->out[0].total);
        buf64(b, c->out[1].total);
        buf64(b, c->in.ring.end);
        buf16(b, 1); /* length of what this and later versions add */
        buf8(b, (uint8_t)(c->background | c->terminal << 1));
    }
}

/* ---- how it ends ------------------------------------------------------------------------------------------ */

void command_order(struct command *c, uint32_t order, int signal, int scope)
{
    struct shim_command o = {order, signal, scope};
    if (c->ctl >= 0)
        /* A full socket means a shim that does not listen: the patience timer deals with it. */
        (void)!send(c->ctl, &o, sizeof o, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void command_kill(struct command *c)
{
    if (c->state >= KILLING)
        return;
    c->state = KILLING;
    c->patience_ms = now_us() / 1000 + SHIM_PATIENCE_MS;
    command_order(c, ORDER_KILL, 0, 0);
}

void command_begin_end(struct command *c, uint8_t cause, uint32_t grace_ms)
{
    if (c->state >= KILLING)
        return;
    if (c->main_ended) {
        /* How it ended is settled; only what it left behind is killed sooner. */
        command_kill(c);
        return;
    }
    if (!c->cause)
        c->cause = cause;
    c->timeout_ms = 0;
    uint64_t due = now_us() / 1000 + grace_ms;
    if (grace_ms == 0) {
        command_kill(c);
        return;
    }
    if (!c->kill_ms || due < c->kill_ms)
        c->kill_ms = due;
    if (c->terminal)
        terminal_hang_up(c);
    else
        command_order(c, ORDER_SIGNAL, SIGTERM, SCOPE_GROUP);
}

/* It passed the size that a file may have, which is 0 above the budget, or failed while the disk was full. */
static bool ended_by_disk(const struct command *c)
{
    bool signalled = WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGXFSZ;
    bool child_signalled = WIFEXITED(c->status) && WEXITSTATUS(c->status) == 128 + SIGXFSZ;
    if (signalled || child_signalled)
        return true;
    return WIFEXITED(c->status) && WEXITSTATUS(c->status) != 0 && disk_full();
}

static uint8_t final_cause(const struct command *c)
{
    if (c->cause)
        return c->cause;
    if (!c->main_ended)
        return CAUSE_SHIM_KILLED;
    bool killed = WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL;
    bool child_killed = WIFEXITED(c->status) && WEXITSTATUS(c->status) == 128 + SIGKILL;
    if ((killed || child_killed) && oom_kills() > c->ooms)
        return CAUSE_OOM;
    if (ended_by_disk(c))
        return CAUSE_DISK_QUOTA;
    return WIFSIGNALED(c->status) ? CAUSE_SIGNAL : CAUSE_EXITED;
}

/* A list like the options of START: tag u8, length u16, value. */
static void exit_facts(const struct command *c, struct buf *b)
{
    uint64_t from[2], to[2];
    bool cut[2];
    for (int i = 0; i < 2; i++)
        cut[i] = output_gap(c, &c->out[i], &from[i], &to[i]);
    if (cut[0] || cut[1]) {
        buf8(b, FACT_CUT);
        buf16(b, 32);
        for (int i = 0; i < 2; i++) {
            buf64(b, from[i]);
            buf64(b, to[i]);
        }
    }
    buf8(b, FACT_RUSAGE);
    buf16(b, sizeof c->usage);
    for (size_t i = 0; i < sizeof c->usage / sizeof *c->usage; i++)
        buf64(b, c->usage[i]);
    if (c->session.name[0]) {
        buf8(b, FACT_SESSION);
        buf16(b, 1);
        buf8(b, c->session.outcome);
    }
}

static void send_exit(const struct command *c)
{
    struct buf b = {0};
    buf8(&b, c->cause);
    buf8(&b, !c->main_ended ? 0 : WIFEXITED(c->status) ? 1 : 2);
    buf16(&b, c->spool.written ? 1 : 0);
    buf32(&b, (uint32_t)(!c->main_ended ? 0 : WIFEXITED(c->status) ? WEXITSTATUS(c->status) : WTERMSIG(c->status)));
    buf64(&b, c->out[0].total);
    buf64(&b, c->out[1].total);
    buf64(&b, c->user_us);
    buf64(&b, c->system_us);
    buf64(&b, c->max_rss_kb);
    buf64(&b, c->ended_us - c->started_us);
    buf64(&b, c->spool.written);
    for (int i = 0; i < 2; i++)
        sha256_end(&c->out[i].hash, buf_add(&b, 32));
    exit_facts(c, &b);
    frame_out(T_EXIT, 0, c->channel, b.p, b.len);
    free(b.p);
}

void command_maybe_finish(struct command *c)
{
    if (c->state != GONE || c->out[0].fd >= 0 || c->out[1].fd >= 0 || (c->orphaned && sweeping) ||
        disk_settling(c->ended_us) || !spool_finished(c))
        return;
    c->cause = final_cause(c);
    c->state = ENDED;
    if (c->attached)
        send_exit(c);
}

/* Nothing of it will be asked for again. The struct stays until no event and no dead child can point here. */
static void forget(struct command *c)
{
    c->dead = true;
    command_close(c);
}

void command_forget_abandoned(void)
{
    struct command *oldest = NULL;
    for (struct command *c = commands; c; c = c->next) {
        bool untaken = c->attached && (c->out[0].sent < c->out[0].total || c->out[1].sent < c->out[1].total);
        if (!c->dead && c->state == ENDED && !untaken && (!oldest || c->ended_us < oldest->ended_us))
            oldest = c;
    }
    if (oldest && lease_ms && now_us() - oldest->ended_us > lease_ms * 1000)
        forget(oldest);
}

/* No process of it is left. */
static void gone(struct command *c)
{
    c->state = GONE;
    c->ended_us = now_us();
    c->timeout_ms = c->kill_ms = c->drain_ms = c->patience_ms = 0;
    poll_close(&c->ctl);
    session_close(&c->session);
    if (c->slave >= 0)
        close(c->slave);
    c->slave = -1;
    for (int i = 0; i < 2; i++)
        stream_last(c, &c->out[i]);
    command_maybe_finish(c);
}

static void main_ended(struct command *c, const struct shim_report *r)
{
    c->main_ended = true;
    c->status = r->value;
    c->user_us = r->user_us;
    c->system_us = r->system_us;
    c->max_rss_kb = r->max_rss_kb;
    memcpy(c->usage, r->usage, sizeof c->usage);
    if (c->slave >= 0)
        close(c->slave);
    c->slave = -1;
    /* What we ended ourselves says nothing about where its shell would have gone. */
    session_end(&c->session, !c->cause);
    if (!r->stage)
        gone(c);
    else if (c->cause)
        command_kill(c);
    else if (c->state < DRAINING) {
        c->state = DRAINING;
        c->timeout_ms = c->kill_ms = 0;
        c->drain_ms = now_us() / 1000 + DRAIN_MS;
    }
}

/* One report; false when there is none. What a short command has to say is all there at once, and leaves in one write. */
static bool shim_reported(struct command *c)
{
    struct shim_report r;
    ssize_t n = recv(c->ctl, &r, sizeof r, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n != sizeof r) {
        /* The shim is dead without a last word: someone inside killed it. What it guarded is ours now. */
        if (!c->cause && !c->main_ended)
            c->cause = CAUSE_SHIM_KILLED;
        c->orphaned = true;
        if (!c->started && c->attached)
            command_started(c, false);
        c->started = true;
        sweeping = true;
        gone(c);
        return false;
    }
    /* A shim runs as the same user as the command, so its words are checked like anyone's. */
    if (r.event == SHIM_STARTED && !c->started) {
        c->started = true;
        c->main = r.value;
        c->session.moved |= r.stage == 1;
        if (c->attached)
            command_started(c, false);
    } else if (r.event == SHIM_FAILED && !c->started) {
        if (c->attached)
            start_failed(c->channel, r.value, r.stage);
        forget(c);
    } else if (r.event == SHIM_EXITED && !c->main_ended && c->started) {
        main_ended(c, &r);
    } else if (r.event == SHIM_GONE && c->main_ended) {
        gone(c);
    }
    return true;
}

void commands_event(struct source *src, uint32_t events)
{
    struct command *c = src->cmd;
    (void)events;
    if (c->dead)
        return;
    if (src->kind == SRC_CMD_CTL)
        for (int i = 0; i < 4 && !c->dead && c->ctl >= 0 && shim_reported(c); i++)
            ;
    else if (src->kind == SRC_CMD_OUT && c->out[src->which].fd >= 0)
        stream_drain(c, &c->out[src->which]);
    else if (src->kind == SRC_CMD_IN && c->in.fd >= 0)
        stdin_writable(c);
    /* Everything was said and what is left of the tree keeps quiet: no need to wait for the drain time. */
    if (c->state == DRAINING && c->out[0].fd < 0 && c->out[1].fd < 0)
        command_kill(c);
}

void command_reattach(struct command *c, uint32_t channel, const uint64_t from[2], const uint64_t limit[2])
{
    command_attach(c, channel, from, limit);
    if (!c->started)
        return; /* STARTED follows when the shim has reported */
    command_started(c, true);
    if (c->state == ENDED)
        send_exit(c);
}

/* ---- what the controller asks ------------------------------------------------------------------------------ */

void commands_attach(uint32_t channel, const uint8_t *p, size_t n)
{
    struct reader r = {p, n, false};
    const uint8_t *id = rdn(&r, ID_BYTES);
    uint64_t from[2], limit[2];
    for (int i = 0; i < 2; i++)
        from[i] = rd64(&r);
    for (int i = 0; i < 2; i++)
        limit[i] = rd64(&r);
    struct command *c = r.bad ? NULL : command_by_id(id);
    if (!c) {
        start_failed(channel, r.bad ? EINVAL : ENOENT, STAGE_ATTACH);
        return;
    }
    if (from[0] > c->out[0].total || from[1] > c->out[1].total) {
        start_failed(channel, ERANGE, STAGE_ATTACH);
        return;
    }
    command_reattach(c, channel, from, limit);
}

void commands_ack(uint32_t channel, uint16_t flags, const uint8_t *p, size_t n)
{
    struct command *c = command_by_channel(channel);
    struct reader r = {p, n, false};
    bool all = true;
    for (int i = 0; c && i < 2; i++) {
        struct stream *s = &c->out[i];
        uint64_t upto = rd64(&r), next;
        if (r.bad)
            return;
        output_next(c, s, &next); /* where only a gap is left, it is behind us */
        if (upto > s->sent)
            upto = s->sent; /* nobody can have stored what was not sent */
        if (upto > s->acked)
            s->acked = upto;
        all = all && s->acked == s->total;
        stream_resume(c, s);
    }
    if (c && c->state == ENDED && all && flags & F_EXIT)
        forget(c);
}

void commands_signal(uint32_t channel, const uint8_t *p, size_t n)
{
    struct command *c = command_by_channel(channel);
    struct reader r = {p, n, false};
    int sig = (int)rd32(&r), scope = rd8(&r);
    if (c && !r.bad && sig > 0 && sig < 65 && scope <= SCOPE_TREE && c->state < GONE)
        command_order(c, ORDER_SIGNAL, sig, scope);
}

void commands_cancel(uint32_t channel, const uint8_t *p, size_t n)
{
    struct command *c = command_by_channel(channel);
    struct reader r = {p, n, false};
    uint32_t grace = rd32(&r);
    if (c && !r.bad)
        command_begin_end(c, CAUSE_CANCEL, grace);
}

/* ---- time -------------------------------------------------------------------------------------------------- */

static void soonest(int *wait, uint64_t now, uint64_t due)
{
    int left = due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now);
    if (due && (*wait < 0 || left < *wait))
        *wait = left;
}

int commands_timers(uint64_t now)
{
    static uint64_t next_sweep;
    int wait = -1;
    if (sweeping && next_sweep <= now) {
        sweep_round();
        next_sweep = now_us() / 1000 + SWEEP_MS;
    }
    if (sweeping)
        soonest(&wait, now, next_sweep);
    for (struct command *c = commands; c; c = c->next) {
        if (c->dead || c->state >= GONE)
            continue;
        if (c->timeout_ms && c->timeout_ms <= now)
            command_begin_end(c, CAUSE_TIMEOUT, c->grace_ms);
        if ((c->kill_ms && c->kill_ms <= now) || (c->drain_ms && c->drain_ms <= now)) {
            c->kill_ms = c->drain_ms = 0;
            command_kill(c);
        }
        if (c->patience_ms && c->patience_ms <= now) {
            /* The shim was stopped or is otherwise deaf. Without it its children come to us. */
            c->patience_ms = 0;
            if (c->shim > 0)
                kill(c->shim, SIGKILL);
        }
        for (int i = 0; c->attached && i < 2; i++)
            if (stream_rests(c, &c->out[i]))
                soonest(&wait, now, now + 1);
        soonest(&wait, now, c->timeout_ms);
        soonest(&wait, now, c->kill_ms);
        soonest(&wait, now, c->drain_ms);
        soonest(&wait, now, c->patience_ms);
    }
    return wait;
}

/* Bytes of this command were sent: let the others go first next time. */
void commands_sent(struct command *sent)
{
    if (!sent->next)
        return;
    struct command **at = &commands;
    while (*at != sent)
        at = &(*at)->next;
    *at = sent->next;
    while (*at)
        at = &(*at)->next;
    *at = sent;
    sent->next = NULL;
}

void commands_bury(void)
{
    for (struct command **at = &commands; *at;) {
        struct command *c = *at;
        /* A shim that has not been waited for yet would be taken for an escapee when it is. */
        if (!c->dead || c->shim > 0) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        free(c);
    }
}
