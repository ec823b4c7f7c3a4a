/* The list of commands: lookup, description, timers, removal. */
#include "commands.h"

#include <stdlib.h>

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
        buf16(b, 1); /* length of the fields of this and later versions */
        buf8(b, (uint8_t)(c->background | c->terminal << 1));
    }
}

void commands_list(const struct frame *f)
{
    struct buf b = {0};
    commands_describe(&b);
    frame_out(T_COMMAND_LIST, 0, f->channel, b.p, b.len);
    free(b.p);
}

void command_forget(struct command *c)
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
    if (oldest && lease_ms && now_us() - oldest->ended_us > lease_ms * 1000) {
        command_remember(oldest);
        command_forget(oldest);
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

static void shorten_wait(int *wait, uint64_t now, uint64_t due)
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
        shorten_wait(&wait, now, next_sweep);
    for (struct command *c = commands; c; c = c->next) {
        if (c->dead || c->state >= GONE)
            continue;
        if (c->timeout_ms && c->timeout_ms <= now)
            command_begin_end(c, CAUSE_TIMEOUT, c->grace_ms);
        if ((c->kill_ms && c->kill_ms <= now) || (c->drain_ms && c->drain_ms <= now)) {
            c->kill_ms = c->drain_ms = 0;
            command_kill(c);
        }
        if (c->shim_timeout_ms && c->shim_timeout_ms <= now) {
            /* The shim is stopped or hangs. Once it is killed, its children are adopted by sbxd. */
            c->shim_timeout_ms = 0;
            if (c->shim > 0)
                kill(c->shim, SIGKILL);
        }
        for (int i = 0; c->attached && i < 2; i++)
            if (stream_is_batching(c, &c->out[i]))
                shorten_wait(&wait, now, now + 1);
        shorten_wait(&wait, now, c->timeout_ms);
        shorten_wait(&wait, now, c->kill_ms);
        shorten_wait(&wait, now, c->drain_ms);
        shorten_wait(&wait, now, c->shim_timeout_ms);
    }
    return wait;
}

void command_sent(struct command *sent)
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

void commands_free_dead(void)
{
    for (struct command **at = &commands; *at;) {
        struct command *c = *at;
        /* An unreaped shim would later look like an orphan. */
        if (!c->dead || c->shim > 0) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        free(c);
    }
}
