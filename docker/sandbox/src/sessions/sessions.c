/*
 * List of sessions. A session passes the working directory and the exported variables in which one
 * command's bash ends (docker/sandbox/session/session.c) to the next command that names the
 * session. Of concurrent commands, the last to end decides. Above the limits, the least recently
 * used session is dropped. state.c reads and passes on a state; store.c keeps the file on the
 * volume.
 */
#include "sessions.h"

#include <stdlib.h>

#define MOST_SESSIONS 64
#define MOST_ENTRIES 4096
/* Linux's maximum for one string, less the prefix that we may have to put before it. */
#define LONGEST_ENTRY (131072 - sizeof SESSION_LATER)

struct session *sessions;
static size_t total;

bool session_name_read(char into[SESSION_NAME_MAX + 1], const uint8_t *p, size_t n)
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

/* ---- what may be kept ------------------------------------------------------------------------ */

bool session_entry_allowed(const char *entry)
{
    static const char *const own[] = {"BASH_ENV=", "SHELLOPTS=", "BASHOPTS=", "SHLVL=", "_=", SESSION_FD_NAME "=", SESSION_LATER};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(entry, own[i], strlen(own[i])) == 0)
            return false;
    return true;
}

bool session_entry_valid(const char *entry) { return strlen(entry) <= LONGEST_ENTRY && entry[0] != '=' && strchr(entry, '='); }

char *session_find_entry(char *const *entries, const char *entry)
{
    size_t name = strcspn(entry, "=") + 1;
    for (; entries && *entries; entries++)
        if (strncmp(*entries, entry, name) == 0)
            return *entries;
    return NULL;
}

static void free_session(struct session *s)
{
    if (s) {
        free(s->env);
        free(s->text);
        free(s->record.p);
    }
    free(s);
}

struct session *session_make(const char *name, struct buf *text)
{
    struct session *s = calloc(1, sizeof *s);
    size_t strings = 0;
    bool good = s && text->len && text->len <= SESSION_BYTES && text->p[text->len - 1] == 0;
    for (size_t i = 0; good && i < text->len; i++)
        strings += text->p[i] == 0;
    if (good) {
        s->cwd = (char *)text->p;
        good = (s->cwd[0] == 0 || s->cwd[0] == '/') && strlen(s->cwd) < SESSION_CWD_MAX && strings - 1 <= MOST_ENTRIES;
        s->env = good ? calloc(strings, sizeof *s->env) : NULL;
        good = s->env;
    }
    if (!good) {
        free(text->p);
        free_session(s);
        return NULL;
    }
    char *at = s->cwd + strlen(s->cwd) + 1;
    for (size_t i = 0; good && i + 1 < strings; i++, at += strlen(at) + 1) {
        s->env[i] = at;
        good = session_entry_valid(at);
    }
    s->text = (char *)text->p;
    s->bytes = text->len;
    strcpy(s->name, name);
    if (good)
        return s;
    free_session(s);
    return NULL;
}

/* ---- keeping: the list begins with the one used last ----------------------------------------- */

static struct session **slot_of(const char *name)
{
    struct session **at = &sessions;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static struct session *take(struct session **at)
{
    struct session *s = *at;
    *at = s->next;
    total -= s->bytes;
    return s;
}

static void insert(struct session **at, struct session *s)
{
    s->next = *at;
    *at = s;
    total += s->bytes;
}

const struct session *session_find(const char *name)
{
    struct session **at = slot_of(name), *s = *at;
    if (s)
        insert(&sessions, take(at));
    return s;
}

/* Evicts the least recently used above the limits. */
static void evict(void)
{
    size_t n = 0, bytes = 0;
    struct session **at = &sessions;
    for (; *at && ++n <= MOST_SESSIONS && (bytes += (*at)->bytes) <= SESSIONS_BYTES; at = &(*at)->next)
        ;
    while (*at)
        free_session(take(at));
}

bool session_put(struct session *s)
{
    struct session **at = slot_of(s->name), *before = *at ? take(at) : NULL;
    bool changed = !before || before->bytes != s->bytes || memcmp(before->text, s->text, s->bytes) != 0;
    free_session(before);
    insert(&sessions, s);
    evict();
    return changed;
}

bool session_append(struct session *s)
{
    size_t n = 0;
    struct session **at = &sessions;
    for (; *at && strcmp((*at)->name, s->name) != 0; at = &(*at)->next)
        n++;
    if (*at || n == MOST_SESSIONS || total + s->bytes > SESSIONS_BYTES) {
        free_session(s);
        return false;
    }
    insert(at, s);
    return true;
}

void sessions_forget(void)
{
    while (sessions)
        free_session(take(&sessions));
}
