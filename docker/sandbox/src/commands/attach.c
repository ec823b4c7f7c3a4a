/* Attaching a controller to a command, and its frames for an attached command. */
#include "commands.h"

#include <stdlib.h>

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

void command_write_started(struct command *c, bool existing, struct buf *b)
{
    buf8(b, (uint8_t)(existing | c->session.moved << 1));
    buf32(b, (uint32_t)c->main);
    buf64(b, c->out[0].sent);
    buf64(b, c->out[1].sent);
    buf64(b, c->in.ring.end);
    c->in.credited = c->in.ring.base + STDIN_WINDOW;
    buf64(b, c->in.credited);
}

void command_send_started(struct command *c, bool existing)
{
    struct buf b = {0};
    command_write_started(c, existing, &b);
    frame_out(T_STARTED, 0, c->channel, b.p, b.len);
    free(b.p);
}

void command_reattach(struct command *c, uint32_t channel, const uint64_t from[2], const uint64_t limit[2])
{
    command_attach(c, channel, from, limit);
    if (!c->started)
        return; /* STARTED follows after the shim's report */
    command_send_started(c, true);
    if (c->state == ENDED)
        exit_send(c);
}

/* ---- what the controller asks ---------------------------------------------------------------- */

void commands_attach(const struct frame *f)
{
    struct reader r = frame_reader(f);
    const uint8_t *id = rdn(&r, ID_BYTES);
    uint64_t from[2], limit[2];
    for (int i = 0; i < 2; i++)
        from[i] = rd64(&r);
    for (int i = 0; i < 2; i++)
        limit[i] = rd64(&r);
    struct command *c = r.bad ? NULL : command_by_id(id);
    if (!c && !r.bad && f->flags & F_ACKNOWLEDGED && remembered_answer(f->channel, id, NULL))
        return;
    if (!c) {
        send_start_failed(f->channel, r.bad ? EINVAL : ENOENT, STAGE_ATTACH);
        return;
    }
    if (from[0] > c->out[0].total || from[1] > c->out[1].total) {
        send_start_failed(f->channel, ERANGE, STAGE_ATTACH);
        return;
    }
    command_reattach(c, f->channel, from, limit);
}

void commands_ack(const struct frame *f)
{
    struct command *c = command_by_channel(f->channel);
    struct reader r = frame_reader(f);
    bool all = true;
    for (int i = 0; c && i < 2; i++) {
        struct stream *s = &c->out[i];
        uint64_t upto = rd64(&r), next;
        if (r.bad)
            return;
        output_next(c, s, &next); /* skips the gap, if nothing else is left */
        if (upto > s->sent)
            upto = s->sent; /* unsent bytes cannot have been stored */
        if (upto > s->acked)
            s->acked = upto;
        all = all && s->acked == s->total;
        stream_resume(c, s);
    }
    if (c && c->state == ENDED && all && f->flags & F_EXIT) {
        command_remember(c);
        command_forget(c);
    }
}

void commands_signal(const struct frame *f)
{
    struct command *c = command_by_channel(f->channel);
    struct reader r = frame_reader(f);
    int sig = (int)rd32(&r), scope = rd8(&r);
    if (c && !r.bad && sig > 0 && sig < 65 && scope <= SCOPE_TREE && c->state < GONE)
        command_order(c, ORDER_SIGNAL, sig, scope);
}

void commands_cancel(const struct frame *f)
{
    struct command *c = command_by_channel(f->channel);
    struct reader r = frame_reader(f);
    uint32_t grace = rd32(&r);
    if (c && !r.bad)
        command_begin_end(c, CAUSE_CANCEL, grace);
}
