/*
 * Ends commands: has their shim signal or kill, reads the shim's reports, and moves a command
 * through its states until its last process has ended and its output is complete. Also ends
 * commands that fill the disk. exit.c determines and reports the cause.
 */
#include "commands.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../disk/disk.h"

#define BLAME_US 1000000

void command_order(struct command *c, uint32_t order, int signal, int scope)
{
    struct shim_command o = {order, signal, scope};
    if (c->ctl >= 0)
        /* A full socket means that the shim does not read: the shim timeout handles it. */
        (void)!send(c->ctl, &o, sizeof o, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void command_kill(struct command *c)
{
    if (c->state >= KILLING)
        return;
    c->state = KILLING;
    c->shim_timeout_ms = now_us() / 1000 + SHIM_TIMEOUT_MS;
    command_order(c, ORDER_KILL, 0, 0);
}

void command_begin_end(struct command *c, uint8_t cause, uint32_t grace_ms)
{
    if (c->state >= KILLING)
        return;
    if (c->main_ended) {
        /* The cause is settled; only its remaining processes are killed sooner. */
        command_kill(c);
        return;
    }
    if (!c->cause)
        c->cause = cause;
    if (!c->stopped_us) {
        c->stopped_us = now_us();
        c->stopped = c->shim > 0 ? (uint32_t)proc_count_tree(c->shim) : 0;
    }
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

void command_finish_if_done(struct command *c)
{
    if (c->state != GONE || c->out[0].fd >= 0 || c->out[1].fd >= 0 || (c->orphaned && sweeping) ||
        disk_count_pending(c->ended_us) || !spool_finished(c))
        return;
    for (int i = 0; i < 2; i++)
        hash_all(&c->out[i]);
    exit_decide(c);
    c->state = ENDED;
    if (c->attached)
        exit_send(c);
}

void commands_finish_done(void)
{
    for (struct command *c = commands; c; c = c->next)
        if (!c->dead)
            command_finish_if_done(c);
}

/* Ends all commands if none of these matches, unless another sandbox may have written. */
void commands_end_writers(const pid_t *pids, size_t n, bool only_these)
{
    size_t shims_n;
    pid_t *shims = command_shims(&shims_n), writing[DISK_WRITERS_MAX];
    static uint64_t ended_us;
    /* No writer is found because it has just ended: no other command is to blame. */
    bool found = only_these || now_us() - ended_us < BLAME_US;
    /* Once per pid: a command can make the path up to its shim long. */
    for (size_t i = 0; shims && i < n; i++)
        writing[i] = proc_ancestor(pids[i], shims, shims_n);
    for (int all = 0; shims && all < (found ? 1 : 2); all++)
        for (struct command *c = commands; c; c = c->next) {
            bool writes = all;
            for (size_t i = 0; i < n && !writes; i++)
                writes = c->shim > 0 && c->shim == writing[i];
            if (c->dead || c->state >= KILLING || !writes)
                continue;
            found = true;
            ended_us = now_us();
            command_begin_end(c, CAUSE_DISK_QUOTA, 0);
        }
    free(shims);
}

/* Its last process has ended. */
static void on_tree_gone(struct command *c)
{
    c->state = GONE;
    c->ended_us = now_us();
    c->timeout_ms = c->kill_ms = c->drain_ms = c->shim_timeout_ms = 0;
    poll_close(&c->ctl);
    session_close(&c->session);
    if (c->slave >= 0)
        close(c->slave);
    c->slave = -1;
    for (int i = 0; i < 2; i++)
        stream_last(c, &c->out[i]);
    command_finish_if_done(c);
}

static void on_main_ended(struct command *c, const struct shim_report *r)
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
    /* A shell that was killed by sbxd leaves no valid state. */
    session_end(&c->session, !c->cause);
    if (!r->stage)
        on_tree_gone(c);
    else if (c->cause)
        command_kill(c);
    else if (c->state < DRAINING) {
        c->state = DRAINING;
        c->timeout_ms = c->kill_ms = 0;
        c->drain_ms = now_us() / 1000 + DRAIN_MS;
    }
}

/*
 * Handles one report; false when there is none. All reports of a short command are in the socket at
 * once, and its frames leave in one write.
 */
static bool read_shim_report(struct command *c)
{
    struct shim_report r;
    ssize_t n = recv(c->ctl, &r, sizeof r, MSG_DONTWAIT);
    /*
     * The shim ended with an order unread: ECONNRESET is reported first, once. Its reports are
     * still there.
     */
    if (n < 0 && errno == ECONNRESET)
        n = recv(c->ctl, &r, sizeof r, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n != sizeof r) {
        /*
         * The shim died without a report: a process inside killed it. Its processes are adopted by
         * sbxd.
         */
        if (!c->cause && !c->main_ended)
            c->cause = CAUSE_SHIM_KILLED;
        c->orphaned = true;
        if (!c->started && c->attached)
            command_send_started(c, false);
        c->started = true;
        sweeping = true;
        on_tree_gone(c);
        return false;
    }
    /* A shim runs as the command's uid, so its reports are validated. */
    if (r.event == SHIM_STARTED && !c->started) {
        c->started = true;
        c->main = r.value;
        c->session.moved |= r.stage == 1;
        if (c->attached)
            command_send_started(c, false);
    } else if (r.event == SHIM_FAILED && !c->started) {
        if (c->attached)
            send_start_failed(c->channel, r.value, r.stage);
        command_forget(c);
    } else if (r.event == SHIM_EXITED && !c->main_ended && c->started) {
        on_main_ended(c, &r);
    } else if (r.event == SHIM_GONE && c->main_ended) {
        on_tree_gone(c);
    }
    return true;
}

/* Its output is closed and its remaining processes are silent: skip the drain time. */
static void end_drained(struct command *c)
{
    if (c->state == DRAINING && c->out[0].fd < 0 && c->out[1].fd < 0)
        command_kill(c);
}

void command_ctl_ready(struct source *src, uint32_t events)
{
    struct command *c = src->owner;
    (void)events;
    if (c->dead)
        return;
    for (int i = 0; i < 4 && !c->dead && c->ctl >= 0 && read_shim_report(c); i++)
        ;
    end_drained(c);
}

void command_out_ready(struct source *src, uint32_t events)
{
    struct command *c = src->owner;
    (void)events;
    if (c->dead)
        return;
    if (c->out[src->which].fd >= 0)
        stream_drain(c, &c->out[src->which]);
    end_drained(c);
}

void command_in_ready(struct source *src, uint32_t events)
{
    struct command *c = src->owner;
    (void)events;
    if (c->dead)
        return;
    if (c->in.fd >= 0)
        stdin_writable(c);
    end_drained(c);
}
