/*
 * Background jobs: commands started on purpose to run on by themselves. Few at once, and each with
 * a maximum age, on the monotonic clock, at which it ends as by a timeout.
 */
#include "commands.h"

#define MAX_JOBS 16
#define GRACE_MS 1000
#define DEFAULT_AGE_MS (24ull * 60 * 60 * 1000)

int background_option(struct request *q, struct reader *r)
{
    uint64_t age = rd64(r);
    q->background = true;
    q->max_age_ms = age ? age : DEFAULT_AGE_MS;
    return age >> 40 ? EINVAL : 0; /* thirty-four years; so that the sum of times cannot wrap */
}

bool jobs_full(void)
{
    size_t n = 0;
    for (struct command *c = commands; c; c = c->next)
        n += !c->dead && c->background && c->state != ENDED;
    return n >= MAX_JOBS;
}

void job_begin(struct command *c, const struct request *q)
{
    c->background = q->background;
    if (q->background && !c->grace_ms)
        c->grace_ms = GRACE_MS;
    uint64_t end = c->started_us / 1000 + q->max_age_ms;
    if (q->background && (!c->timeout_ms || end < c->timeout_ms))
        c->timeout_ms = end;
}
