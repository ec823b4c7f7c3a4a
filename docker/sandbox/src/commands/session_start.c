/*
 * Start of a session's command: in the directory and environment that the last one left, with the
 * session library.
 */
#include "commands.h"

#include <stdlib.h>
#include <unistd.h>

extern char **environ;

int session_option(struct request *q, struct reader *r)
{
    size_t n = r->left;
    const uint8_t *name = rdn(r, n);
    return session_name_read(q->session, name, n) ? 0 : EINVAL;
}

int home_option(struct request *q, struct reader *r)
{
    size_t n = r->left;
    const uint8_t *path = rdn(r, n);
    if (n == 0 || n >= sizeof q->home || memchr(path, 0, n))
        return EINVAL;
    memcpy(q->home, path, n);
    return 0;
}

static size_t count(char *const *entries)
{
    size_t n = 0;
    while (entries && entries[n])
        n++;
    return n;
}

/* `base` with the request's assignments replacing those of the same name; a new array. */
static char **merge_assignments(char *const *base, char *const *given)
{
    size_t n = count(base);
    char **env = calloc(n + count(given) + 1, sizeof *env);
    if (!env)
        return NULL;
    memcpy(env, base, n * sizeof *env);
    for (; given && *given; given++) {
        size_t name = strcspn(*given, "=") + 1, k = 0;
        while (k < n && strncmp(env[k], *given, name) != 0)
            k++;
        env[k] = *given;
        n += k == n;
    }
    return env;
}

static int preload_library(struct command *c, struct request *q)
{
    struct session_use *u = &c->session;
    if (access(session_library, R_OK) < 0)
        return ENOSYS;
    u->memory = session_memory();
    if (u->memory < 0)
        return errno;
    u->given = session_copy_assignments(q->given, count(q->given));
    char **env = session_environment(q->envp, u->memory, &q->session_text);
    if (!env || (count(q->given) && !u->given)) {
        free(env);
        session_close(u);
        return ENOMEM;
    }
    free(q->envp);
    q->envp = env;
    return 0;
}

int session_begin(struct command *c, struct request *q)
{
    struct session_use *u = &c->session;
    if (!q->session[0])
        return 0;
    strcpy(u->name, q->session);
    const struct session *s = session_find(q->session);
    if (s) {
        char **env = merge_assignments(s->env, q->given);
        if (!env)
            return ENOMEM;
        free(q->envp);
        q->envp = env;
        if (!q->cwd[0]) {
            u->moved = !s->cwd[0];
            q->cwd = s->cwd;
            q->cwd_may_fail = true;
        }
    } else if (!q->cwd[0] && q->home[0]) {
        q->cwd = q->home;
        q->cwd_may_fail = true;
    }
    /* Only a shell leaves state. A job ends long after later commands of its session. */
    return q->flags & START_SHELL && !q->background ? preload_library(c, q) : 0;
}
