/* EXIT: the cause of a command's end, and the frame that reports it. */
#include "commands.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "../disk/disk.h"

/*
 * It exceeded the file size limit, which is 0 above the budget, or failed while the disk was full.
 */
static bool ended_by_disk(const struct command *c)
{
    bool signalled = WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGXFSZ;
    bool child_signalled = WIFEXITED(c->status) && WEXITSTATUS(c->status) == 128 + SIGXFSZ;
    if (signalled || child_signalled)
        return true;
    return WIFEXITED(c->status) && WEXITSTATUS(c->status) != 0 && disk_full();
}

static uint8_t cause_of(const struct command *c)
{
    if (c->cause)
        return c->cause;
    if (!c->main_ended)
        return CAUSE_SHIM_KILLED;
    bool killed = WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL;
    bool child_killed = WIFEXITED(c->status) && WEXITSTATUS(c->status) == 128 + SIGKILL;
    if ((killed || child_killed) && c->ooms)
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
    if (c->ooms) {
        buf8(b, FACT_OOM);
        buf16(b, 4);
        buf32(b, (uint32_t)c->ooms);
    }
    if (c->stopped_us) {
        buf8(b, FACT_STOPPED);
        buf16(b, 12);
        buf32(b, c->stopped);
        buf64(b, c->ended_us - c->stopped_us);
    }
    if (c->session.name[0]) {
        buf8(b, FACT_SESSION);
        buf16(b, 1);
        buf8(b, c->session.outcome);
    }
}

void exit_write(const struct command *c, struct buf *b)
{
    buf8(b, c->cause);
    buf8(b, !c->main_ended ? 0 : WIFEXITED(c->status) ? 1 : 2);
    buf16(b, c->spool.written ? 1 : 0);
    buf32(b, (uint32_t)(!c->main_ended ? 0 : WIFEXITED(c->status) ? WEXITSTATUS(c->status) : WTERMSIG(c->status)));
    buf64(b, c->out[0].total);
    buf64(b, c->out[1].total);
    buf64(b, c->user_us);
    buf64(b, c->system_us);
    buf64(b, c->max_rss_kb);
    buf64(b, c->ended_us - c->started_us);
    buf64(b, c->spool.written);
    for (int i = 0; i < 2; i++)
        sha256_end(&c->out[i].hash, buf_add(b, 32));
    exit_facts(c, b);
}

void exit_send(const struct command *c)
{
    struct buf b = {0};
    exit_write(c, &b);
    frame_out(T_EXIT, 0, c->channel, b.p, b.len);
    free(b.p);
}

void exit_decide(struct command *c)
{
    uint64_t ooms = oom_kills();
    c->ooms = ooms > c->ooms ? ooms - c->ooms : 0;
    c->cause = cause_of(c);
}
