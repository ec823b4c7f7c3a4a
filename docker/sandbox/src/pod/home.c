/*
 * `sbxd network-down UID`: the same init container, root with CAP_NET_ADMIN, CAP_SETUID and
 * CAP_SETGID, then makes the home on the volume, as the user of the sandbox. Two init containers
 * would delay the start of every Pod by a second: a kubelet polls their ends once a second.
 */
#include "pod.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOME "/volume/home"

static int fail(const char *doing)
{
    fprintf(stderr, "sbxd network-down: %s: %s\n", doing, strerror(errno));
    return 1;
}

/* 0: not the id of a user. */
static uid_t read_uid(const char *text)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    /* It also takes blanks, signs, and what a sign wraps. */
    int digits = text[0] >= '0' && text[0] <= '9';
    return !digits || errno || *end || number > INT_MAX ? 0 : (uid_t)number;
}

int make_home(const char *uid)
{
    uid_t user = read_uid(uid);
    if (user == 0) {
        errno = EINVAL;
        return fail(uid);
    }
    /* The rights end with the user id of root. */
    if (setgroups(0, NULL) < 0 || setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0)
        return fail("become the user of the sandbox");
    umask(0);
    if (mkdir(HOME, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return fail(HOME);
    int fd = open(HOME, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail(HOME);
    close(fd);
    return 0;
}
