/*
 * Paths below a directory on a kernel without openat2, and resolving a path with links: every
 * component is opened by itself and the kernel never follows a symbolic link. The target of a link
 * is put in front of the rest of the path; ".." is a step back in the names reached, which are then
 * walked again from the root. So despite concurrent renames and links the descriptor was reached
 * from the root by names alone.
 */
#include "files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel */

struct walk {
    int root;
    int at; /* the directory reached */
    size_t reached_length;
    char reached[2 * PATH_BYTES + 2]; /* the names to it, each after a '/' */
    char left[2 * PATH_BYTES + 2];   /* the remaining path */
    unsigned links;
    bool no_links;
};

/* One name down from `dir`; -1 when it is no directory, a link included. */
static int open_directory(int dir, const char *name)
{
    return openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int set_directory(struct walk *w, int dir)
{
    if (w->at >= 0)
        close(w->at);
    w->at = dir;
    return dir < 0 ? -1 : 0;
}

static int step_back(struct walk *w)
{
    char *end = memrchr(w->reached, '/', w->reached_length);
    if (!end) {
        errno = EXDEV; /* above the root */
        return -1;
    }
    w->reached_length = (size_t)(end - w->reached);
    w->reached[w->reached_length] = 0;
    if (set_directory(w, open_directory(w->root, ".")) < 0)
        return -1;
    char again[sizeof w->reached], *save = NULL;
    memcpy(again, w->reached, w->reached_length + 1);
    for (char *name = strtok_r(again, "/", &save); name; name = strtok_r(NULL, "/", &save))
        if (set_directory(w, open_directory(w->at, name)) < 0)
            return -1;
    return 0;
}

static int step_down(struct walk *w, const char *name)
{
    size_t n = strlen(name);
    if (w->reached_length + n + 2 > sizeof w->reached) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int next = open_directory(w->at, name);
    if (next < 0)
        return -1;
    w->reached[w->reached_length] = '/';
    memcpy(w->reached + w->reached_length + 1, name, n + 1);
    w->reached_length += n + 1;
    return set_directory(w, next);
}

/*
 * 1: `name` is a link and its target now precedes `rest`; 0: it is no link; -1: it must not be
 * followed.
 */
static int expand_link(struct walk *w, const char *name, const char *rest)
{
    char target[PATH_BYTES + 1], joined[sizeof w->left];
    ssize_t n = readlinkat(w->at, name, target, sizeof target);
    if (n < 0)
        return errno == EINVAL ? 0 : -1;
    size_t more = strlen(rest);
    if (w->no_links || ++w->links > LINKS_MAX)
        errno = ELOOP;
    else if (n == 0)
        errno = ENOENT;
    else if (target[0] == '/')
        errno = EXDEV;
    else if ((size_t)n + more + 1 > sizeof joined)
        errno = ENAMETOOLONG;
    else {
        memcpy(joined, target, (size_t)n);
        memcpy(joined + n, rest, more + 1);
        memcpy(w->left, joined, (size_t)n + more + 1);
        return 1;
    }
    return -1;
}

/*
 * Takes the first component off the rest. Slashes after it stay in `rest`: they require a
 * directory.
 */
static void next_component(const struct walk *w, char name[NAME_MAX + 2], const char **rest)
{
    size_t n = strcspn(w->left, "/");
    *rest = w->left + n;
    if (n > NAME_MAX)
        n = NAME_MAX + 1; /* the kernel returns the right errno */
    memcpy(name, w->left, n);
    name[n] = 0;
}

/* One component. 0: continue; 1: `*fd` is the answer; -1. */
static int step(struct walk *w, uint64_t flags, mode_t mode, int *fd)
{
    char name[NAME_MAX + 2];
    const char *rest;
    next_component(w, name, &rest);
    size_t slashes = strspn(rest, "/");
    bool last = rest[slashes] == 0;
    int done = 0;
    if (strcmp(name, "..") == 0) {
        done = step_back(w);
    } else if (strcmp(name, ".") != 0) {
        bool follow = !last || slashes || !(flags & O_NOFOLLOW);
        int link = follow ? expand_link(w, name, rest) : 0;
        if (link)
            return link < 0 ? -1 : 0;
        if (last) {
            *fd = openat(w->at, name, (int)flags | O_NOFOLLOW | O_CLOEXEC | (slashes ? O_DIRECTORY : 0), mode);
            return *fd < 0 ? -1 : 1;
        }
        done = step_down(w, name);
    }
    if (done < 0)
        return -1;
    memmove(w->left, rest + slashes, strlen(rest + slashes) + 1);
    return 0;
}

static int begin_walk(struct walk *w, const char *path)
{
    size_t n = strlen(path);
    if (path[0] == '/')
        errno = EXDEV;
    else if (n > PATH_BYTES)
        errno = ENAMETOOLONG;
    else {
        memcpy(w->left, path, n + 1);
        return set_directory(w, open_directory(w->root, "."));
    }
    return -1;
}

int walk_beneath(int root, const char *path, uint64_t flags, mode_t mode, bool no_links)
{
    struct walk w = {.root = root, .at = -1, .no_links = no_links};
    int fd = -1, done = begin_walk(&w, path);
    while (done == 0 && w.left[0])
        done = step(&w, flags, mode, &fd);
    if (done == 0) /* it ended in "." or "..": the directory itself */
        fd = openat(w.at, ".", (int)flags | O_CLOEXEC, mode);
    int error = errno;
    if (w.at >= 0)
        close(w.at);
    errno = error;
    return fd;
}

/* ---- where a path leads ---------------------------------------------------------------------- */

/* Appends a name that is missing or no directory, and the rest after it. */
static int append_rest(struct walk *w, const char *name, const char *rest)
{
    char all[sizeof w->left + NAME_MAX + 2], *save = NULL;
    snprintf(all, sizeof all, "%s%s", name, rest);
    for (char *part = strtok_r(all, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        size_t n = strlen(part);
        if (strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            errno = ENOENT; /* back out of a missing component */
            return -1;
        }
        if (w->reached_length + n + 2 > sizeof w->reached) {
            errno = ENAMETOOLONG;
            return -1;
        }
        w->reached[w->reached_length] = '/';
        memcpy(w->reached + w->reached_length + 1, part, n + 1);
        w->reached_length += n + 1;
    }
    w->left[0] = 0;
    return 0;
}

/* One component. 0: continue until nothing is left; -1. */
static int resolve_step(struct walk *w)
{
    char name[NAME_MAX + 2];
    const char *rest;
    next_component(w, name, &rest);
    size_t slashes = strspn(rest, "/");
    int done = 0;
    if (strcmp(name, "..") == 0) {
        done = step_back(w);
    } else if (strcmp(name, ".") != 0) {
        int link = expand_link(w, name, rest);
        if (link > 0)
            return 0;
        if (link < 0)
            return errno == ENOENT ? append_rest(w, name, rest) : -1;
        done = step_down(w, name);
        if (done < 0 && (errno == ENOENT || (errno == ENOTDIR && !rest[slashes])))
            return append_rest(w, name, rest);
    }
    if (done < 0)
        return -1;
    memmove(w->left, rest + slashes, strlen(rest + slashes) + 1);
    return 0;
}

int walk_resolve(int root, const char *path, char resolved[PATH_BYTES + 1])
{
    struct walk w = {.root = root, .at = -1};
    int done = begin_walk(&w, path);
    while (done == 0 && w.left[0])
        done = resolve_step(&w);
    if (done == 0 && w.reached_length > PATH_BYTES) {
        errno = ENAMETOOLONG;
        done = -1;
    }
    int error = done < 0 ? errno : 0;
    if (w.at >= 0)
        close(w.at);
    if (!error)
        memcpy(resolved, w.reached_length ? w.reached + 1 : "", w.reached_length ? w.reached_length : 1);
    return error;
}
