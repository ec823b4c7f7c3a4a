/*
 * Sessions: the working directory and the exported variables that a command's bash leaves (session/session.c) are what
 * the next command of the same name begins with. The last one to end wins.
 *
 * The state is written by the user's own process into memory that it shares with us, so it is copied first, then
 * checked, and taken whole or not at all. Its size is bounded by the memory's, which is sealed. What could keep the
 * next bash from starting is not carried (BASH_ENV and the shell's own options) or is hidden from its loader (LD_…).
 */
#include "sessions.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern char **environ;

#define MOST_SESSIONS 64
#define MOST_BYTES (4u << 20)
#define MOST_ENTRIES 4096
/* What Linux takes for one string, less the prefix that we may have to put before it. */
#define LONGEST_ENTRY (131072 - sizeof SESSION_LATER)

const char *session_library = "/usr/lib/sandlot/session.so";

static struct session *sessions;
static size_t total;

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

bool session_name_take(char into[SESSION_NAME_MAX + 1], const uint8_t *p, size_t n)
{
    if (n == 0 || n > SESSION_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (p[i] <= ' ' || p[i] >= 127)
            return false;
    memcpy(into, p, n);
    into[n] = 0;
    return true;
}

const struct session *session_find(const char *name)
{
    for (struct session *s = sessions; s; s = s->next)
        if (strcmp(s->name, name) == 0) {
            s->used_us = now_us();
            return s;
        }
    return NULL;
}

/* ---- keeping ------------------------------------------------------------------------------------------------ */

static void drop(struct session **at)
{
    struct session *s = *at;
    *at = s->next;
    total -= s->bytes;
    free(s->env);
    free(s->text);
    free(s);
}

void sessions_clear(void)
{
    while (sessions)
        drop(&sessions);
}

static void make_room(void)
{
    for (;;) {
        size_t n = 0;
        struct session **oldest = NULL;
        for (struct session **at = &sessions; *at; at = &(*at)->next, n++)
            if (!oldest || (*at)->used_us < (*oldest)->used_us)
                oldest = at;
        if (!oldest || (n <= MOST_SESSIONS && total <= MOST_BYTES))
            return;
        drop(oldest);
    }
}

static void keep(struct session *s)
{
    for (struct session **at = &sessions; *at; at = &(*at)->next)
        if (strcmp((*at)->name, s->name) == 0) {
            drop(at);
            break;
        }
    s->used_us = now_us();
    s->next = sessions;
    sessions = s;
    total += s->bytes;
    make_room();
}

/* ---- reading what was left ---------------------------------------------------------------------------------- */

static bool may_carry(const char *entry)
{
    static const char *const own[] = {"BASH_ENV=", "SHELLOPTS=", "BASHOPTS=", "SHLVL=", "_=", SESSION_FD_NAME "=", SESSION_LATER};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (starts(entry, own[i]))
            return false;
    return true;
}

static char *same_name(char *const *entries, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1;
    for (; entries && *entries; entries++)
        if (strncmp(*entries, entry, name) == 0)
            return *entries;
    return NULL;
}

/*
 * What the shell had of the request, unchanged, was for one command: the session keeps what it had under that name.
 * Returns the entry to keep, or NULL.
 */
static const char *of_session(char *entry, const struct session_use *u, const struct session *before)
{
    const char *given = same_name(u->given, entry);
    return given && strcmp(given, entry) == 0 ? same_name(before ? before->env : environ, entry) : entry;
}

/* Point s->env at the strings of s->text behind the directory. */
static bool index_entries(struct session *s, size_t n)
{
    s->env = calloc(n + 1, sizeof *s->env);
    if (!s->env)
        return false;
    char *at = s->text + strlen(s->text) + 1;
    for (size_t i = 0; i < n; i++) {
        s->env[i] = at;
        at += strlen(at) + 1;
    }
    s->cwd = s->text;
    return true;
}

/* `raw` is our own copy and ends in NUL. Returns whether `s` is whole; what it points to is its own either way. */
static bool read_state(struct session *s, char *raw, size_t length, const struct session_use *u)
{
    const struct session *before = session_find(u->name);
    struct buf text = {0};
    size_t at = strlen(raw) + 1, entries = 0, strings = 0;
    bool good = raw[0] == 0 || (raw[0] == '/' && at <= 4096);
    for (size_t i = at; i < length; i++)
        strings += raw[i] == 0;
    good = good && strings <= MOST_ENTRIES;
    buf_bytes(&text, raw, at);
    while (good && at < length && text.len <= SESSION_BYTES) {
        char *entry = raw + at;
        size_t size = strlen(entry);
        at += size + 1;
        good = size <= LONGEST_ENTRY && entry[0] != '=' && strchr(entry, '=');
        const char *kept = good && may_carry(entry) ? of_session(entry, u, before) : NULL;
        if (kept) {
            buf_bytes(&text, kept, strlen(kept) + 1);
            entries++;
        }
    }
    s->text = (char *)text.p;
    s->bytes = text.len;
    return good && text.len <= SESSION_BYTES && index_entries(s, entries);
}

static uint8_t take_state(const struct session_use *u)
{
    struct session_head head;
    if (pread(u->memory, &head, sizeof head, 0) != sizeof head || head.state == SESSION_NOTHING || head.state == SESSION_WRITING)
        return SESSION_UNCHANGED;
    if (head.state != SESSION_WHOLE || head.length <= sizeof head || head.length > SESSION_BYTES)
        return SESSION_REFUSED;
    size_t length = head.length - sizeof head;
    char *raw = malloc(length);
    struct session *s = calloc(1, sizeof *s);
    bool good = raw && s && pread(u->memory, raw, length, sizeof head) == (ssize_t)length && raw[length - 1] == 0 &&
                read_state(s, raw, length, u);
    free(raw);
    if (!good) {
        if (s) {
            free(s->env);
            free(s->text);
        }
        free(s);
        return SESSION_REFUSED;
    }
    strcpy(s->name, u->name);
    keep(s);
    return SESSION_KEPT;
}

/* ---- one command's part ------------------------------------------------------------------------------------- */

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

static bool for_the_loader(const char *entry) { return starts(entry, "LD_") || starts(entry, "GLIBC_TUNABLES="); }

char **session_environment(char *const *envp, int memory, char **made)
{
    size_t n = 0, bytes = strlen("LD_PRELOAD=") + strlen(session_library) + 1 + sizeof SESSION_FD_NAME + 16;
    for (; envp[n]; n++)
        if (for_the_loader(envp[n]))
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
        env[i] = for_the_loader(envp[i]) ? at : envp[i];
        if (env[i] == at)
            at += sprintf(at, SESSION_LATER "%s", envp[i]) + 1;
    }
    env[n] = at;
    at += sprintf(at, "LD_PRELOAD=%s", session_library) + 1;
    env[n + 1] = at;
    sprintf(at, SESSION_FD_NAME "=%d", memory);
    return env;
}

char **session_given(char *const *entries, size_t n)
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
        u->outcome = take_state(u);
    session_close(u);
}
