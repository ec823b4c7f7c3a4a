/* What sbxd is started with. In a container that is nothing: see the defaults in main.c. */
#include "sbxd.h"
#include "sessions/sessions.h"

#include <stdlib.h>
#include <sys/resource.h>

static bool limit_option(const char *name, const char *value)
{
    static const struct {
        const char *name;
        int resource;
    } known[] = {{"--limit-fsize", RLIMIT_FSIZE}, {"--limit-nofile", RLIMIT_NOFILE}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            struct rlimit l;
            l.rlim_cur = l.rlim_max = strtoull(value, NULL, 10);
            if (setrlimit(known[i].resource, &l) < 0)
                die(name);
            return true;
        }
    return false;
}

void read_arguments(int argc, char **argv)
{
    size_t tmps = 0;
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (i + 1 == argc) {
            errno = EINVAL;
            die(name);
        }
        if (strcmp(name, "--workspace") == 0)
            workspace_path = value;
        else if (strcmp(name, "--lease") == 0)
            lease_ms = strtoull(value, NULL, 10) * 1000;
        else if (strcmp(name, "--session-library") == 0)
            session_library = value;
        else if (strcmp(name, "--tmp") == 0 && tmps < 3)
            tmp_dirs[tmps++] = value;
        else if (!limit_option(name, value)) {
            errno = EINVAL;
            die(name);
        }
    }
    if (is_init && !tmps) {
        tmp_dirs[0] = "/tmp";
        tmp_dirs[1] = "/dev/shm";
        tmp_dirs[2] = "/run";
        tmp_dirs[3] = "/dev/mqueue";
    }
}
