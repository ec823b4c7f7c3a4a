/* Parsing of START: every field is valid, or nothing of it runs. */
#include "commands.h"

#include <stdlib.h>

extern char **environ;

/* A length-prefixed string, copied and terminated; NULL when it is truncated or contains NUL. */
static char *take_text(struct reader *r, char **at)
{
    uint32_t n = rd32(r);
    const uint8_t *p = rdn(r, n);
    if (!p || memchr(p, 0, n)) {
        r->bad = true;
        return NULL;
    }
    char *text = *at;
    memcpy(text, p, n);
    text[n] = 0;
    *at += n + 1;
    return text;
}

#define MOST_GIVEN 4096 /* each is compared with the previous ones */

static size_t name_length(const char *assignment) { return strcspn(assignment, "="); }

/* Our own environment, with the request's assignments replacing those of the same name. */
static bool merge_env(struct request *q, struct reader *r, char **at, uint32_t count)
{
    size_t own = 0;
    while (environ[own])
        own++;
    q->envp = calloc(own + count + 1, sizeof *q->envp);
    if (!q->envp)
        return false;
    q->given = calloc(count + 1, sizeof *q->given);
    if (!q->given)
        return false;
    memcpy(q->envp, environ, own * sizeof *environ);
    size_t n = own;
    for (uint32_t i = 0; i < count; i++) {
        char *entry = take_text(r, at);
        size_t name = entry ? name_length(entry) : 0;
        if (!entry || name == 0 || entry[name] != '=')
            return false;
        q->given[i] = entry;
        size_t k = 0;
        while (k < n && !(name_length(q->envp[k]) == name && memcmp(q->envp[k], entry, name) == 0))
            k++;
        q->envp[k] = entry;
        if (k == n)
            n++;
    }
    return true;
}

static int parse_options(struct request *q, struct reader *r)
{
    uint64_t seen[4] = {0};
    while (r->left && !r->bad) {
        uint8_t tag = rd8(r);
        uint16_t length = rd16(r);
        const uint8_t *p = rdn(r, length);
        if (!p)
            return EINVAL;
        struct reader value = {p, length, false};
        bool again = seen[tag / 64] >> tag % 64 & 1;
        seen[tag / 64] |= 1ull << tag % 64;
        int error = again && !OPT_REPEATS(tag) ? EINVAL : start_option(q, tag, &value);
        if (error || value.bad || value.left)
            return error ? error : EINVAL;
    }
    return r->bad ? EINVAL : 0;
}

/* 0, or the errno of the refusal. */
static int parse_program(struct request *q, struct reader *from, size_t n)
{
    struct reader r = *from;
    q->id = rdn(&r, ID_BYTES);
    q->flags = rd16(&r);
    q->limit[0] = rd64(&r);
    q->limit[1] = rd64(&r);
    if (r.bad || q->flags & ~START_KNOWN)
        return EINVAL;

    /*
     * Each string takes four bytes of length on the wire and one terminator here, so n is enough
     * for all.
     */
    char *at = q->text = malloc(n + 16);
    if (!at)
        return EINVAL;
    const uint8_t *program = r.p;
    q->cwd = take_text(&r, &at);
    uint32_t argc = rd32(&r);
    if (r.bad || argc == 0 || argc > r.left / 4 || (q->flags & START_SHELL && argc != 1))
        return EINVAL;
    bool shell = q->flags & START_SHELL;
    q->argv = calloc(argc + (shell ? 3 : 1), sizeof *q->argv);
    if (!q->argv)
        return EINVAL;
    static char bash[] = "/bin/bash", dash_c[] = "-c";
    if (shell) {
        q->argv[0] = bash;
        q->argv[1] = dash_c;
    }
    for (uint32_t i = 0; i < argc; i++)
        q->argv[i + (shell ? 2 : 0)] = take_text(&r, &at);
    q->asked = crc32c(shell ? 1 : 2, program, (size_t)(r.p - program));
    uint32_t envc = rd32(&r);
    if (envc > MOST_GIVEN)
        return E2BIG;
    if (r.bad || envc > r.left / 4 || !merge_env(q, &r, &at, envc) || r.bad)
        return EINVAL;
    *from = r;
    return 0;
}

int request_read(struct request *q, const uint8_t *p, size_t n)
{
    struct reader r = {p, n, false};
    if (!rdn(&r, ID_BYTES)) /* the boot id, checked by the caller */
        return EINVAL;
    int error = parse_program(q, &r, n);
    return error ? error : parse_options(q, &r);
}

void request_forget(struct request *q)
{
    free(q->argv);
    free(q->envp);
    free(q->given);
    free(q->session_text);
    free(q->text);
}
