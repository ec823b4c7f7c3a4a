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
    char *text; /* the bytes for all of these pointers */
    char *cwd;  /* "" when it was removed under the shell */
    char **env; /* complete, ended by NULL */
    size_t bytes;
    struct buf record; /* its bytes from store.c, made once: a session never changes */
    bool recorded;
};

/* Outcomes for the state that a command may leave. */
enum session_outcome { SESSION_UNCHANGED = 0, SESSION_KEPT = 1, SESSION_REFUSED = 2 };

/* One command's part in a session. */
struct session_use {
    char name[SESSION_NAME_MAX + 1]; /* "" when it has none */
    int memory;                      /* its bash's memory for the state, or -1 */
    /* The session's directory was missing: it began in the workspace */
    bool moved;
    uint8_t outcome;
    /* The request's own assignments, ended by NULL, in one block: they are not the session's */
    char **given;
};

/* sessions.c */

/* The sessions, most recently used first. Changed by the functions below only. */
extern struct session *sessions;

bool session_name_read(char into[SESSION_NAME_MAX + 1], const uint8_t *p, size_t n);
/* True for an assignment that a session passes on, and that the next bash can be given. */
bool session_entry_allowed(const char *entry);
bool session_entry_valid(const char *entry);
/* The entry of this list (ended by NULL; NULL: empty) for the same variable; or NULL. */
char *session_find_entry(char *const *entries, const char *entry);
/*
 * Makes a session of a directory and `NAME=value` entries, each ended by NUL, from an untrusted
 * source: NULL when they are too many, too long or invalid. Takes the bytes over, or frees them.
 */
struct session *session_make(const char *name, struct buf *text);
/* The state that this session's next command starts with, or NULL. */
const struct session *session_find(const char *name);
/*
 * Replaces the one of its name, as the most recent; evicts what exceeds the limits. Returns true if
 * it differs.
 */
bool session_put(struct session *s);
/* Appends it; frees it and returns false where there is no room or one of its name. */
bool session_append(struct session *s);
void sessions_forget(void);

/* store.c: the same on the user's volume */

/* Sets the key that seals the file, once, and reads the sessions in it. */
void sessions_set_key(const uint8_t key[KEY_BYTES]);
extern uint8_t state_key[KEY_BYTES];
/*
 * Reads sessions from the bytes after that file's header, which are untrusted: up to the first
 * invalid one.
 */
void sessions_read(const uint8_t *p, size_t n);
/* After a change: the file thread writes them soon. */
void sessions_save(void);
/* At the end: writes the rest now. */
void sessions_flush(void);
/* Forgets all of them, in the file too. */
void sessions_clear(void);

/* state.c: the state that a bash leaves, and the one that the next starts with */

extern const char *session_library;

/* Memory for the state, sealed; -1 with errno. */
int session_memory(void);
/*
 * The environment for a bash with the session library, from `envp`: a new array, whose added
 * entries are in *made. NULL when out of memory. The caller frees both.
 */
char **session_environment(char *const *envp, int memory, char **made);
/* A copy of these assignments in one block; NULL when there are none or memory is exhausted. */
char **session_copy_assignments(char *const *entries, size_t n);
/* At the command's end: takes the state of its bash, if `whole`, and releases everything. */
void session_end(struct session_use *u, bool whole);
void session_close(struct session_use *u);

#endif
