/*
 * The shim: one per command, forked from sbxd without exec. It is the subreaper of all processes of
 * the command, so none can escape, and it alone reaps and signals them, so no signal hits a reused
 * pid.
 *
 * It reports over one SEQPACKET socket and takes orders from it. When that socket closes, sbxd is
 * gone and the shim kills its processes. When no process is left below it, it exits.
 */
#include "commands.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../walls/walls.h"

extern char **environ;

static int ctl;
static pid_t main_pid;
static bool main_ended, reported;
static volatile bool moved; /* written by the child of vfork */
static struct shim_report ending;

static void report(const struct shim_report *r)
{
    while (send(ctl, r, sizeof *r, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

static _Noreturn void report_failure(int error, int stage)
{
    struct shim_report r = {.event = SHIM_FAILED, .value = error, .stage = stage};
    report(&r);
    _exit(0);
}

/* A shim must not hold other commands' pipes, or their readers would never see an end. */
static void close_all_but(const struct shim_job *job)
{
    enum { KEPT = 5 };
    int keep[KEPT] = {job->in, job->out, job->err, job->ctl, job->memory >= 0 ? job->memory : job->ctl};
    for (int i = 1; i < KEPT; i++)
        for (int k = i; k > 0 && keep[k] < keep[k - 1]; k--) {
            int t = keep[k];
            keep[k] = keep[k - 1];
            keep[k - 1] = t;
        }
    unsigned next = 0;
    for (int i = 0; i <= KEPT; i++) {
        unsigned last = i < KEPT ? (unsigned)keep[i] : ~0u;
        bool empty = i < KEPT && last <= next;
        if (!empty && syscall(SYS_close_range, next, i < KEPT ? last - 1 : last, 0) < 0) {
            long max = sysconf(_SC_OPEN_MAX);
            for (long fd = next; fd < (i < KEPT ? (long)last : max); fd++)
                close((int)fd);
        }
        if (i < KEPT && last + 1 > next)
            next = last + 1;
    }
}

static bool apply_limits(const struct limits *l)
{
    for (int i = 0; i < LIMIT_KINDS; i++)
        if (l->set >> i & 1) {
            struct rlimit was, now = {l->most[i], l->most[i]};
            if (getrlimit((__rlimit_resource_t)limit_resources[i], &was) < 0)
                return false;
            /* Leaves one second to handle SIGXCPU. */
            if (limit_resources[i] == RLIMIT_CPU && now.rlim_max < was.rlim_max)
                now.rlim_max++;
            if (setrlimit((__rlimit_resource_t)limit_resources[i], &now) < 0)
                return false;
        }
    return !l->nice || setpriority(PRIO_PROCESS, 0, l->nice) == 0;
}

/*
 * The child of vfork shares our memory until exec: it may only make system calls and store its
 * error.
 */
static void exec_command(const struct shim_job *job, volatile int *error, volatile int *stage)
{
    sigset_t none;
    setsid();
    *stage = STAGE_SETUP;
    if (job->terminal && ioctl(job->in, TIOCSCTTY, 0) < 0)
        goto failed;
    if (job->memory >= 0 && fcntl(job->memory, F_SETFD, 0) < 0)
        goto failed;
    if (dup2(job->in, 0) < 0 || dup2(job->out, 1) < 0 || dup2(job->err, 2) < 0)
        goto failed;
    if (!apply_limits(job->limits))
        goto failed;
    struct rlimit nothing = {0, 0};
    if (job->capped && setrlimit(RLIMIT_FSIZE, &nothing) < 0)
        goto failed;
    *stage = STAGE_CWD;
    if (chdir(job->workspace) < 0)
        goto failed;
    if (job->cwd && chdir(job->cwd) < 0) {
        if (!job->cwd_may_fail)
            goto failed;
        moved = true;
    }
    if (!job->may_trace && !walls_forbid_tracing()) {
        *stage = STAGE_SETUP;
        goto failed;
    }
    *stage = STAGE_EXEC;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvpe(job->argv[0], job->argv, job->envp);
failed:
    *error = errno;
    _exit(127);
}

static void reap(void)
{
    for (;;) {
        int status;
        struct rusage use;
        pid_t pid = wait4(-1, &status, WNOHANG, &use);
        if (pid < 0 && errno == ECHILD) {
            struct shim_report gone = {.event = SHIM_GONE};
            report(reported ? &gone : &ending);
            _exit(0);
        }
        if (pid <= 0)
            return;
        if (WIFSTOPPED(status)) {
            /*
             * It called PTRACE_TRACEME (possible only in the debug profile) and stopped for good.
             */
            kill(pid, SIGKILL);
            continue;
        }
        if (pid == main_pid && !main_ended) {
            main_ended = true;
            ending = (struct shim_report){
                .event = SHIM_EXITED,
                .value = status,
                .user_us = (uint64_t)use.ru_utime.tv_sec * 1000000 + (uint64_t)use.ru_utime.tv_usec,
                .system_us = (uint64_t)use.ru_stime.tv_sec * 1000000 + (uint64_t)use.ru_stime.tv_usec,
                .max_rss_kb = (uint64_t)use.ru_maxrss,
                .usage = {(uint64_t)use.ru_minflt, (uint64_t)use.ru_majflt, (uint64_t)use.ru_inblock, (uint64_t)use.ru_oublock,
                          (uint64_t)use.ru_nvcsw, (uint64_t)use.ru_nivcsw},
            };
        }
    }
}

static void execute_order(const struct shim_command *c)
{
    if (c->scope == SCOPE_TREE)
        proc_signal_tree(getpid(), NULL, 0, c->signal);
    else if (!main_ended)
        kill(c->scope == SCOPE_GROUP ? -main_pid : main_pid, c->signal);
    else if (c->scope == SCOPE_GROUP && kill(-main_pid, 0) == 0)
        /* The leader has ended, but the group's id stays in use while members live. */
        kill(-main_pid, c->signal);
}

_Noreturn void shim_run(const struct shim_job *job)
{
    explicit_bzero(sandbox_key, sizeof sandbox_key);
    explicit_bzero(state_key, sizeof state_key);
    ctl = job->ctl;
    sigprocmask(SIG_SETMASK, &all_signals, NULL);
    close_all_but(job);
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    environ = job->envp; /* execvpe searches the PATH of the command, not that of sbxd */

    volatile int error = 0, stage = 0;
    pid_t pid = vfork();
    if (pid == 0)
        exec_command(job, &error, &stage);
    if (pid < 0)
        report_failure(errno, STAGE_FORK);
    if (error) {
        waitpid(pid, NULL, 0);
        report_failure(error, stage);
    }
    main_pid = pid;
    if (job->memory >= 0)
        close(job->memory);
    close(job->in);
    close(job->out);
    if (job->err != job->out)
        close(job->err);
    struct shim_report started = {.event = SHIM_STARTED, .value = pid, .stage = moved};
    report(&started);

    sigset_t waiting = all_signals;
    sigdelset(&waiting, SIGCHLD);
    bool killing = false;
    for (;;) {
        reap();
        if (main_ended && !reported) {
            ending.stage = 1;
            report(&ending);
            reported = true;
        }
        if (killing) {
            proc_kill_tree(getpid(), NULL, 0);
            reap();
        }
        struct pollfd p = {ctl, killing ? 0 : POLLIN, 0};
        struct timespec soon = {0, SWEEP_MS * 1000000};
        if (ppoll(&p, 1, killing ? &soon : NULL, &waiting) <= 0)
            continue;
        struct shim_command c;
        ssize_t n = killing ? -1 : recv(ctl, &c, sizeof c, MSG_DONTWAIT);
        if (killing || n == 0 || (n == sizeof c && c.order == ORDER_KILL))
            killing = true;
        else if (n == sizeof c && c.order == ORDER_SIGNAL)
            execute_order(&c);
    }
}
