/* The options of START: a list of (tag u8, length u16, value). A tag that is not known here is refused. */
#include "request.h"

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

int start_option(struct request *q, uint8_t tag, struct reader *r)
{
    switch (tag) {
    case OPT_TIMEOUT:
        return timeout_option(q, r);
    case OPT_SPOOL:
        return spool_option(q, r);
    case OPT_TERMINAL:
        return terminal_option(q, r);
    case OPT_BACKGROUND:
        return background_option(q, r);
    case OPT_SESSION:
        return session_option(q, r);
    default:
        return EINVAL;
    }
}
