/* Sessions: what the commands of one name hand on to each other. See sessions.c. */
#ifndef SBXD_SESSIONS_H
#define SBXD_SESSIONS_H

#include "sbxd.h"
#include "session.h"

#define SESSION_NAME_MAX 64

struct session {
    struct session *next;
    char name[SESSION_NAME_MAX + 1];
    char *text;  /* the bytes that all of these point into */
    char *cwd;   /* "" when it was removed under the shell */
    char **env;  /* complete, ended by NULL */
    size_t bytes;
    uint64_t used_us;
};

/* What became of the state that a command may leave. */
enum session_outcome { SESSION_UNCHANGED = 0, SESSION_KEPT = 1, SESSION_REFUSED = 2 };

/* One command's part in a session. */
struct session_use {
    char name[SESSION_NAME_MAX + 1]; /* "" when it has none */
    int memory;                      /* where its bash leaves its state, or -1 */
    bool moved;                      /* the directory of the session was gone: it began in the workspace */
    uint8_t outcome;
    char **given; /* the request's own assignments, ended by NULL, in one block: they are not the session's */
};

extern const char *session_library;

bool session_name_take(char into[SESSION_NAME_MAX + 1], const uint8_t *p, size_t n);
/* What this session's next command begins with, or NULL. */
const struct session *session_find(const char *name);
/* Memory for the state, sealed; -1 with errno. */
int session_memory(void);
/*
 * The environment for a bash with our library, from `envp`: a new array, whose made-up entries are in *made. NULL when
 * memory is gone. Both are freed by the caller.
 */
char **session_environment(char *const *envp, int memory, char **made);
/* A copy of these assignments in one block; NULL when there are none or memory is gone. */
char **session_given(char *const *entries, size_t n);
/* The command is over: take what its bash has left, if `whole`, and let go of everything. */
void session_end(struct session_use *u, bool whole);
void session_close(struct session_use *u);
void sessions_clear(void);

#endif
