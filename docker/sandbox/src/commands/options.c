/* The options of START: a list of (tag u8, length u16, value). An unknown tag is refused. */
#include "commands.h"

#include <sys/resource.h>

static int timeout_option(struct request *q, struct reader *r)
{
    q->timeout_ms = rd32(r);
    q->grace_ms = rd32(r);
    return q->timeout_ms ? 0 : EINVAL;
}

static int spool_option(struct request *q, struct reader *r)
{
    q->spooled = true;
    q->spool_after = rd32(r);
    q->spool_max = rd32(r);
    return q->spool_after <= SPOOL_AFTER_MAX ? 0 : EINVAL;
}

static int cut_option(struct request *q, struct reader *r)
{
    uint32_t head = rd32(r), tail = rd32(r);
    if (q->policy.kind != POLICY_STREAM || head > CUT_MAX || tail > CUT_MAX - head)
        return EINVAL;
    q->policy = (struct policy){.kind = POLICY_CUT, .head = head, .tail = tail};
    return 0;
}

static int limit_option(struct request *q, struct reader *r)
{
    if (q->policy.kind != POLICY_STREAM)
        return EINVAL;
    q->policy = (struct policy){.kind = POLICY_LIMIT, .limit = rd64(r)};
    return 0;
}

const int limit_resources[LIMIT_KINDS] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_AS};

static int rlimit_option(struct request *q, struct reader *r)
{
    uint8_t kind = rd8(r);
    uint64_t most = rd64(r);
    struct rlimit ours;
    if (r->bad || kind >= LIMIT_KINDS || q->limits.set >> kind & 1)
        return EINVAL;
    /* Commands start with our own limits: one above the hard limit could not be given. */
    if (getrlimit((__rlimit_resource_t)limit_resources[kind], &ours) < 0)
        return errno;
    q->limits.set |= (uint8_t)(1 << kind);
    q->limits.most[kind] = most;
    return most > ours.rlim_max ? EPERM : 0;
}

static int nice_option(struct request *q, struct reader *r)
{
    q->limits.nice = rd8(r);
    return q->limits.nice <= 19 ? 0 : EINVAL;
}

/* A wish only: without the engine's mark (walls/) the command has the default filter all the same. */
static int profile_option(struct request *q, struct reader *r)
{
    q->may_trace = rd8(r) == PROFILE_DEBUG;
    return q->may_trace ? 0 : EINVAL;
}

int start_option(struct request *q, uint8_t tag, struct reader *r)
{
    switch (tag) {
    case OPT_TIMEOUT:
        return timeout_option(q, r);
    case OPT_SPOOL:
        return spool_option(q, r);
    case OPT_CUT:
        return cut_option(q, r);
    case OPT_LIMIT:
        return limit_option(q, r);
    case OPT_RLIMIT:
        return rlimit_option(q, r);
    case OPT_NICE:
        return nice_option(q, r);
    case OPT_TERMINAL:
        return terminal_option(q, r);
    case OPT_BACKGROUND:
        return background_option(q, r);
    case OPT_SESSION:
        return session_option(q, r);
    case OPT_HOME:
        return home_option(q, r);
    case OPT_PROFILE:
        return profile_option(q, r);
    default:
        return EINVAL;
    }
}
