/* Sessions: what the commands of one name hand on to each other. */
#ifndef SBXD_SESSIONS_H
#define SBXD_SESSIONS_H

#include "../wire/wire.h" /* first: it asks for what GNU adds */

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

/* sessions.c */

/* Those that are kept, the one used last first. Changed by the functions below only. */
extern struct session *sessions;

bool session_name_take(char into[SESSION_NAME_MAX + 1], const uint8_t *p, size_t n);
/* Whether an assignment is one that a session hands on, and one that the next bash can be given. */
bool session_may_carry(const char *entry);
bool session_entry_fits(const char *entry);
/* The entry of this list, ended by NULL (NULL: empty), that is about the same variable; or NULL. */
char *session_same_name(char *const *entries, const char *entry);
/*
 * A session of a directory and `NAME=value` entries, each ended by NUL, which may come from anybody: NULL when they are
 * too many, too long or no such thing. Takes the bytes over, or frees them.
 */
struct session *session_make(const char *name, struct buf *text);
/* What this session's next command begins with, or NULL. */
const struct session *session_find(const char *name);
/* In place of the one of its name, as the one used last; what is too much for all is forgotten. Whether it differs. */
bool session_keep(struct session *s);
/* Behind those that are there; frees it and returns false where there is no room or one of its name. */
bool session_add(struct session *s);
void sessions_forget(void);

/* store.c: the same on the user's volume */

/* The key that seals them, once: those that are kept are read. */
void sessions_unseal(const uint8_t key[KEY_BYTES]);
extern uint8_t state_key[KEY_BYTES];
/* The same from the bytes behind the head of that file, which may be anything: up to the first that is no session. */
void sessions_read(const uint8_t *p, size_t n);
/* They have changed: written soon, by the file thread. */
void sessions_save(void);
/* The last words: write now what is not written yet. */
void sessions_flush(void);
/* Forget all of them, there too. */
void sessions_clear(void);

/* state.c: what a bash leaves, and what the next one begins with */

extern const char *session_library;

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

#endif
