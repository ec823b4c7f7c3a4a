/*
 * Preloaded (LD_PRELOAD) into the bash of a command that belongs to a session: when that bash ends,
 * its working directory and exported variables are left in shared memory, which sbxd reads after
 * the end and gives to the next command of the session. Neither the output nor the processes that
 * the script starts show anything of it.
 *
 * - The memory is a memfd of fixed size, sealed by sbxd. It is mapped before main() and its
 *   descriptor closed, so no script can use it, and a program that replaces bash has lost it.
 * - Our variables are taken out of the environment before main(). Variables of the dynamic loader
 *   in the session's state come under a prefix, so that children get them but they cannot break
 *   the start of this bash.
 * - bash ends in three ways: exit() (handled by a destructor), execve() (also for the last command
 *   of a text: bash saves the fork), and a signal. After a signal nothing is left and the session
 *   stays as it was.
 *
 * Written by the user's own process, so sbxd does not trust it: see src/sessions/state.c, and the
 * layout in session.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session.h"

extern char **environ;

/* The part of bash's own variables.h that has stayed the same since bash 2. */
struct shell_variable {
    char *name, *value, *exportstr;
    void *dynamic_value, *assign_func;
    int attributes, context;
};
enum { ATTRIBUTE_ARRAY = 0x4, ATTRIBUTE_ASSOC = 0x40 };

/*
 * Exported by bash for its loadable builtins. Elsewhere they are NULL, and the plain environment
 * must do.
 */
extern char **export_env __attribute__((weak));
extern void *shell_variables __attribute__((weak));
extern void *global_variables __attribute__((weak));
extern int array_needs_making __attribute__((weak));
extern struct shell_variable **all_exported_variables(void) __attribute__((weak));
extern void maybe_make_export_env(void) __attribute__((weak));

static uint8_t *memory;
static size_t used;
static pid_t owner;
/* This process becomes another program: its end is not that of the session's shell */
static bool replaced;

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* ---- before main() --------------------------------------------------------------------------- */

__attribute__((constructor)) static void begin(void)
{
    const char *fd = getenv(SESSION_FD_NAME);
    if (!fd)
        return;
    int number = atoi(fd);
    void *p = mmap(NULL, SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
    close(number);
    if (p != MAP_FAILED)
        memory = p;
    owner = getpid();
    char **to = environ;
    for (char **from = environ; *from; from++) {
        char *entry = *from;
        if (starts(entry, SESSION_FD_NAME "=") || starts(entry, "LD_PRELOAD="))
            memset(entry, 0, strlen(entry)); /* /proc/<pid>/environ shows these bytes */
        else
            *to++ = starts(entry, SESSION_LATER) ? entry + strlen(SESSION_LATER) : entry;
    }
    *to = NULL;
}

/* ---- at the end ------------------------------------------------------------------------------ */

static bool add(const char *text, size_t n)
{
    if (n > SESSION_BYTES - used)
        return false;
    memcpy(memory + used, text, n);
    used += n;
    return true;
}

static bool add_entry(const char *entry) { return add(entry, strlen(entry) + 1); }

/* Variables of one shell level, which count the shells and are not the session's. */
static bool of_this_shell(const char *name) { return strcmp(name, "SHLVL") == 0 || strcmp(name, "_") == 0; }

static bool add_plain(char *const envp[], bool only_functions)
{
    bool fits = true;
    for (; fits && envp && *envp; envp++)
        if (!only_functions || starts(*envp, "BASH_FUNC_"))
            fits = add_entry(*envp);
    return fits;
}

/*
 * Exported variables of the shell itself, without a function's own ones and those of one command
 * (`A=1 command`).
 */
static bool add_variables(void)
{
    void *innermost = shell_variables;
    shell_variables = global_variables;
    struct shell_variable **all = all_exported_variables();
    shell_variables = innermost;
    bool fits = true;
    for (; fits && all && *all; all++) {
        const struct shell_variable *v = *all;
        if (!v->name || !v->value || v->attributes & (ATTRIBUTE_ARRAY | ATTRIBUTE_ASSOC) || of_this_shell(v->name))
            continue;
        fits = add(v->name, strlen(v->name)) && add("=", 1) && add_entry(v->value);
    }
    return fits;
}

static void leave_state(char *const envp[])
{
    struct session_head *head = (void *)memory;
    char cwd[4096];
    head->state = SESSION_WRITING;
    used = sizeof *head;
    if (!getcwd(cwd, sizeof cwd) || cwd[0] != '/')
        cwd[0] = 0; /* it was removed: sbxd reports that to the next command */
    bool known = &shell_variables && &global_variables && all_exported_variables;
    bool fits = add_entry(cwd) && (known ? add_variables() && add_plain(envp, true) : add_plain(envp, false));
    head->length = (uint32_t)used;
    __atomic_store_n(&head->state, fits ? SESSION_WHOLE : SESSION_TOO_BIG, __ATOMIC_RELEASE);
}

static bool ours(void) { return memory && !replaced && getpid() == owner; }

__attribute__((destructor)) static void end(void)
{
    if (!ours())
        return;
    if (&array_needs_making && maybe_make_export_env) {
        array_needs_making = 1;
        maybe_make_export_env();
    }
    leave_state(&export_env && export_env ? export_env : environ);
}

__attribute__((visibility("default"))) int execve(const char *path, char *const argv[], char *const envp[])
{
    if (ours())
        leave_state(envp);
    long result = syscall(SYS_execve, path, argv, envp);
    /*
     * A script without #!: bash reads it itself, in this process. Otherwise bash continues, and a
     * signal still leaves nothing.
     */
    if (errno == ENOEXEC && getpid() == owner)
        replaced = true;
    else if (ours())
        ((struct session_head *)(void *)memory)->state = SESSION_NOTHING;
    return (int)result;
}
