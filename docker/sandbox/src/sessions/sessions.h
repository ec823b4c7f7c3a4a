/* Sessions: the state that the commands of one name pass on to each other. */
#ifndef SBXD_SESSIONS_H
#define SBXD_SESSIONS_H

#include "../wire/wire.h" /* first: it defines _GNU_SOURCE */

#include "../../session/session.h"

#define SESSION_NAME_MAX 64
#define SESSION_CWD_MAX 4096        /* with its NUL */
#define SESSIONS_BYTES (4u << 20)   /* of all of them together */

struct session {
    struct session *next;
    char name[SESSION_NAME_MAX + 1];
    char *text; /* the bytes that all of these point into */
    char *cwd;  /* "" when it was removed under the shell */
    char **env; /* complete, ended by NULL */
    size_t bytes;
    struct buf record; /* what store.c writes of it, made once: a session never changes */
    bool recorded;
};

/* The outcome for the state that a command may leave. */
enum session_outcome { SESSION_UNCHANGED = 0, SESSION_KEPT = 1, SESSION_REFUSED = 2 };

/* One command's part in a session. */
struct session_use {
    char name[SESSION_NAME_MAX + 1]; /* "" when it has none */
    int memory;                      /* where its bash leaves its state, or -1 */
    /* The directory of the session was gone: it began in the workspace */
    bool moved;
    uint8_t outcome;
    /* The request's own assignments, ended by NULL, in one block: they are not the session's */
    char **given;
};

/* sessions.c */

/* The sessions, most recently used first. Changed by the functions below only. */
extern struct session *sessions;

bool session_name_read(char into[SESSION_NAME_MAX + 1], const uint8_t *p, size_t n);
/* Whether a session passes on an assignment, and whether the next bash can be given it. */
bool session_entry_allowed(const char *entry);
bool session_entry_valid(const char *entry);
/* The entry of this list (ended by NULL; NULL: empty) for the same variable; or NULL. */
char *session_find_entry(char *const *entries, const char *entry);
/*
 * A session of a directory and `NAME=value` entries, each ended by NUL, from an untrusted source:
 * NULL when they are too many, too long or invalid. Takes the bytes over, or frees them.
 */
struct session *session_make(const char *name, struct buf *text);
/* The state that this session's next command starts with, or NULL. */
const struct session *session_find(const char *name);
/*
 * Replaces the one of its name, as the most recent; evicts what exceeds the limits. Returns whether
 * it differs.
 */
bool session_put(struct session *s);
/* Appends it; frees it and returns false where there is no room or one of its name. */
bool session_append(struct session *s);
void sessions_forget(void);

/* store.c: the same on the user's volume */

/* Set the key that seals the file, once, and read the sessions in it. */
void sessions_set_key(const uint8_t key[KEY_BYTES]);
extern uint8_t state_key[KEY_BYTES];
/*
 * Read sessions from the bytes behind the head of that file, which are untrusted: up to the first
 * invalid one.
 */
void sessions_read(const uint8_t *p, size_t n);
/* They have changed: the file thread writes them soon. */
void sessions_save(void);
/* At the end: write now what is not written yet. */
void sessions_flush(void);
/* Forget all of them, in the file too. */
void sessions_clear(void);

/* state.c: the state that a bash leaves, and the one that the next starts with */

extern const char *session_library;

/* Memory for the state, sealed; -1 with errno. */
int session_memory(void);
/*
 * The environment for a bash with the session library, from `envp`: a new array, whose added
 * entries are in *made. NULL when memory is gone. Both are freed by the caller.
 */
char **session_environment(char *const *envp, int memory, char **made);
/* A copy of these assignments in one block; NULL when there are none or memory is gone. */
char **session_copy_assignments(char *const *entries, size_t n);
/* The command is over: take the state of its bash, if `whole`, and release everything. */
void session_end(struct session_use *u, bool whole);
void session_close(struct session_use *u);

#endif
