/*
 * Processes without a shim: orphans that sbxd adopted because their shim was killed, and everything
 * at a RESET. Killed in short rounds of the loop, so that sbxd answers also during a fork bomb.
 */
#include "commands.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../files/files.h"

bool sweeping;
static bool resetting;
static struct buf asking; /* channels, u32 each, waiting for RESET_DONE */

bool reset_running(void) { return resetting; }

/* Responsive shims. One with a closed socket protects no process, whether it is dying or not. */
pid_t *command_shims(size_t *n)
{
    pid_t *shims = malloc((command_count(false) + 1) * sizeof *shims);
    *n = 0;
    for (struct command *c = commands; shims && c; c = c->next)
        if (c->shim > 0 && c->ctl >= 0)
            shims[(*n)++] = c->shim;
    return shims;
}

/* Returns true if something was still alive. */
static bool kill_round(void)
{
    if (!resetting) {
        size_t n;
        pid_t *shims = command_shims(&n);
        if (!shims)
            return true;
        size_t found = proc_kill_tree(getpid(), shims, n);
        free(shims);
        /*
         * /proc is not read atomically: a process whose parent has just ended can be missed once,
         * not twice.
         */
        static int quiet;
        quiet = found ? 0 : quiet + 1;
        if (quiet < 2)
            return true;
        quiet = 0;
        return false;
    }
    if (is_init && !listens)
        kill(-1, SIGKILL); /* every process of this PID namespace but sbxd */
    else /* The relay is below no process of ours. */
        proc_kill_tree(getpid(), NULL, 0);
    siginfo_t child;
    return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool sweep_round(void)
{
    if (kill_round())
        return true;
    sweeping = false;
    if (resetting) {
        sessions_clear(); /* also the remedy for a state that harms every command */
        if (!asking.len)
            files_empty_tmp(0);
        for (size_t at = 0; at < asking.len; at += 4)
            files_empty_tmp(get32(asking.p + at));
        asking.len = 0;
        resetting = false;
    }
    commands_finish_done();
    return false;
}

/* A new controller: the reset continues without its requester. */
void reset_forget_requests(void) { asking.len = 0; }

void commands_reset(const struct frame *f)
{
    for (struct command *c = commands; c; c = c->next)
        if (!c->dead && c->state < GONE && !c->main_ended && !c->cause)
            c->cause = CAUSE_CANCEL;
    buf32(&asking, f->channel);
    resetting = sweeping = true;
}

/* gVisor of 2022 has no subreapers: sbxd adopts a command's leftovers, not its shim. */
static bool shims_are_subreapers(void)
{
    static int known = -1;
    int set;
    if (known < 0)
        known = prctl(PR_GET_CHILD_SUBREAPER, &set) == 0;
    return known;
}

void commands_reap(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        struct command *c = commands;
        while (c && c->shim != pid)
            c = c->next;
        if (WIFSTOPPED(status)) {
            /* A stopped shim would not notice the end of its command; its death is noticed. */
            kill(pid, SIGKILL);
        } else if (c) {
            c->shim = 0;
            if (!shims_are_subreapers())
                sweeping = true;
        } else {
            /* Not a shim: it was adopted, so others may have been. */
            sweeping = true;
        }
    }
}
