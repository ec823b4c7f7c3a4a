/* What a START asked for: filled by request.c and, per option, by options.c. */
#ifndef SBXD_REQUEST_H
#define SBXD_REQUEST_H

#include "command.h"

struct request {
    const uint8_t *id;
    uint16_t flags;
    uint64_t limit[2];
    char *cwd;
    char **argv;
    char **envp;
    char *text; /* the bytes that all of these point into */

    uint32_t timeout_ms, grace_ms;
    bool spooled;
    uint32_t spool_after, spool_max;
    struct policy policy;
    struct limits limits;
    bool terminal, background;
    uint16_t rows, columns;
    uint64_t max_age_ms; /* of a background job */
    char session[SESSION_NAME_MAX + 1]; /* "" when it has none */
    bool cwd_may_fail;                  /* it is the session's: where it is gone, the workspace will do */
    char **given;                       /* the request's own assignments, ended by NULL */
    char *session_text;                 /* what some entries of envp point into */
};

/* request.c: fill `q`, which is zeroed, from a whole request. 0, or the errno that the command is refused with. */
int request_read(struct request *q, const uint8_t *p, size_t n);
/* Also after a refusal. */
void request_forget(struct request *q);

/*
 * options.c: read one option of a START: what it asks for goes into `q`. Every tag is allowed once, unless it says otherwise.
 * Returns 0, or the errno that the command is refused with: EINVAL for an unknown tag or a value that cannot be.
 */
int start_option(struct request *q, uint8_t tag, struct reader *value);

int terminal_option(struct request *q, struct reader *r);   /* terminal.c */
int background_option(struct request *q, struct reader *r); /* jobs.c */
bool jobs_full(void);
void job_begin(struct command *c, const struct request *q);
int session_option(struct request *q, struct reader *r); /* session_start.c */
/* Before the shim is forked. 0, or the errno that the command is refused with. */
int session_begin(struct command *c, struct request *q);

#endif
