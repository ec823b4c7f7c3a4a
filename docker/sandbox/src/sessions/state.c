/*
 * Session state from one bash to the next. The user's own process writes it into shared memory, so
 * it is copied first, then validated, and taken whole or not at all. Its size is bounded by that of
 * the memory, which is sealed. Variables that could keep the next bash from starting are not passed
 * on (BASH_ENV and the shell's own options) or are hidden from its loader (LD_…).
 */
#include "sessions.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern char **environ;

const char *session_library = "/usr/lib/sandlot/session.so";

/* ---- reading what was left ------------------------------------------------------------------- */

/*
 * An unchanged assignment of the request was for one command: the session keeps its former value.
 * Returns the entry to keep, or NULL.
 */
static const char *entry_to_keep(const char *entry, const struct session_use *u, const struct session *before)
{
    const char *given = session_find_entry(u->given, entry);
    return given && strcmp(given, entry) == 0 ? session_find_entry(before ? before->env : environ, entry) : entry;
}

/* `raw` is a private copy and ends in NUL. NULL when it is not a whole state. */
static struct session *read_state(const char *raw, size_t length, const struct session_use *u)
{
    const struct session *before = session_find(u->name);
    struct buf text = {0};
    size_t at = strlen(raw) + 1;
    bool good = at <= SESSION_CWD_MAX;
    buf_bytes(&text, raw, at);
    while (good && at < length && text.len <= SESSION_BYTES) {
        const char *entry = raw + at;
        at += strlen(entry) + 1;
        good = session_entry_valid(entry);
        const char *kept = good && session_entry_allowed(entry) ? entry_to_keep(entry, u, before) : NULL;
        if (kept)
            buf_bytes(&text, kept, strlen(kept) + 1);
    }
    if (good)
        return session_make(u->name, &text);
    free(text.p);
    return NULL;
}

static uint8_t read_memory(const struct session_use *u)
{
    struct session_head head;
    if (pread(u->memory, &head, sizeof head, 0) != sizeof head || head.state == SESSION_NOTHING || head.state == SESSION_WRITING)
        return SESSION_UNCHANGED;
    if (head.state != SESSION_WHOLE || head.length <= sizeof head || head.length > SESSION_BYTES)
        return SESSION_REFUSED;
    size_t length = head.length - sizeof head;
    char *raw = malloc(length);
    bool whole = raw && pread(u->memory, raw, length, sizeof head) == (ssize_t)length && raw[length - 1] == 0;
    struct session *s = whole ? read_state(raw, length, u) : NULL;
    free(raw);
    if (!s)
        return SESSION_REFUSED;
    if (session_put(s))
        sessions_save();
    return SESSION_KEPT;
}

/* ---- one command's part ---------------------------------------------------------------------- */

int session_memory(void)
{
    int fd = memfd_create("session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, SESSION_BYTES) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static bool is_loader_variable(const char *entry)
{
    static const char tunables[] = "GLIBC_TUNABLES=";
    return strncmp(entry, "LD_", 3) == 0 || strncmp(entry, tunables, sizeof tunables - 1) == 0;
}

char **session_environment(char *const *envp, int memory, char **made)
{
    size_t n = 0, bytes = strlen("LD_PRELOAD=") + strlen(session_library) + 1 + sizeof SESSION_FD_NAME + 16;
    for (; envp[n]; n++)
        if (is_loader_variable(envp[n]))
            bytes += sizeof SESSION_LATER + strlen(envp[n]);
    char **env = calloc(n + 3, sizeof *env);
    char *at = *made = malloc(bytes);
    if (!env || !at) {
        free(env);
        free(at);
        *made = NULL;
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        env[i] = is_loader_variable(envp[i]) ? at : envp[i];
        if (env[i] == at)
            at += sprintf(at, SESSION_LATER "%s", envp[i]) + 1;
    }
    env[n] = at;
    at += sprintf(at, "LD_PRELOAD=%s", session_library) + 1;
    env[n + 1] = at;
    sprintf(at, SESSION_FD_NAME "=%d", memory);
    return env;
}

char **session_copy_assignments(char *const *entries, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(entries[i]) + 1;
    char **given = n ? malloc((n + 1) * sizeof *given + bytes) : NULL;
    if (!given)
        return NULL;
    char *at = (char *)(given + n + 1);
    for (size_t i = 0; i < n; i++) {
        given[i] = at;
        at = stpcpy(at, entries[i]) + 1;
    }
    given[n] = NULL;
    return given;
}

void session_close(struct session_use *u)
{
    if (u->memory >= 0)
        close(u->memory);
    u->memory = -1;
    free(u->given);
    u->given = NULL;
}

void session_end(struct session_use *u, bool whole)
{
    if (u->memory >= 0 && whole)
        u->outcome = read_memory(u);
    session_close(u);
}
