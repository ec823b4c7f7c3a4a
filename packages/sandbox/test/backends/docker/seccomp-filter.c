/*
 * The system call profile as an engine makes it: compiled by libseccomp, for this machine or another one. RULES is a file
 * with a rule on each line, as seccomp-filter.ts writes them.
 *
 *   seccomp-filter program ARCHITECTURE RULES    the classic BPF that the kernel would get, on stdout
 *   seccomp-filter numbers ARCHITECTURE          the system calls that libseccomp knows there: a number and a name a line
 *   seccomp-filter run RULES COMMAND ARGUMENT…   the command with the filter loaded, and never as root
 */
#define _GNU_SOURCE
#include <grp.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ARGUMENTS 6
#define HIGHEST_NUMBER 1024
#define NOBODY 65534

static void fail(const char *what)
{
    perror(what);
    exit(125);
}

static void must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-result));
        exit(125);
    }
}

static uint32_t architecture(const char *name)
{
    uint32_t found = seccomp_arch_resolve_name(name);
    if (found == 0) {
        fprintf(stderr, "libseccomp knows no architecture %s\n", name);
        exit(125);
    }
    return found;
}

/* "allow", or the errno; the errno 0 is success without the call. */
static uint32_t action(const char *answer)
{
    return strcmp(answer, "allow") == 0 ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO((uint32_t)atoi(answer));
}

static enum scmp_compare comparison(const char *name)
{
    if (strcmp(name, "SCMP_CMP_EQ") == 0)
        return SCMP_CMP_EQ;
    if (strcmp(name, "SCMP_CMP_NE") == 0)
        return SCMP_CMP_NE;
    if (strcmp(name, "SCMP_CMP_MASKED_EQ") == 0)
        return SCMP_CMP_MASKED_EQ;
    fprintf(stderr, "no rule of ours compares with %s\n", name);
    exit(125);
}

/* The rest of one line: after the name the answer and how many conditions, then each of them. */
static void add_rule(scmp_filter_ctx filter, const char *call)
{
    char answer[8];
    unsigned conditions;
    if (scanf("%7s %u", answer, &conditions) != 2 || conditions > MOST_ARGUMENTS)
        fail("a rule");
    struct scmp_arg_cmp compared[MOST_ARGUMENTS];
    for (unsigned i = 0; i < conditions; i++) {
        char name[32];
        if (scanf("%u %31s %" SCNu64 " %" SCNu64, &compared[i].arg, name, &compared[i].datum_a, &compared[i].datum_b) != 4)
            fail("a condition");
        compared[i].op = comparison(name);
    }
    int number = seccomp_syscall_resolve_name(call);
    /* Like runc: a name unknown to this libseccomp keeps the default, which refuses. */
    if (number != __NR_SCMP_ERROR)
        must(seccomp_rule_add_array(filter, action(answer), number, conditions, compared), call);
}

static scmp_filter_ctx read_filter(const char *rules, uint32_t wanted)
{
    if (freopen(rules, "re", stdin) == NULL)
        fail(rules);
    char refusal[8];
    if (scanf("default %7s", refusal) != 1)
        fail("the default");
    scmp_filter_ctx filter = seccomp_init(action(refusal));
    if (filter == NULL)
        fail("seccomp_init");
    if (wanted != seccomp_arch_native()) {
        must(seccomp_arch_remove(filter, SCMP_ARCH_NATIVE), "seccomp_arch_remove");
        must(seccomp_arch_add(filter, wanted), "seccomp_arch_add");
    }
    char call[64];
    while (scanf("%63s", call) == 1)
        add_rule(filter, call);
    if (freopen("/dev/null", "r", stdin) == NULL)
        fail("/dev/null");
    return filter;
}

static void print_numbers(uint32_t wanted)
{
    for (int number = 0; number < HIGHEST_NUMBER; number++) {
        char *name = seccomp_syscall_resolve_num_arch(wanted, number);
        if (name != NULL)
            printf("%d %s\n", number, name);
        free(name);
    }
}

/*
 * Calls behind the filter must not harm this machine if the filter has a hole: the process has no
 * privilege to do so.
 */
static void run(const char *rules, char **command)
{
    scmp_filter_ctx filter = read_filter(rules, seccomp_arch_native());
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
        fail("giving up root");
    must(seccomp_load(filter), "seccomp_load");
    execvp(command[0], command);
    fail(command[0]);
}

int main(int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "run") == 0)
        run(argv[2], argv + 3);
    else if (argc == 4 && strcmp(argv[1], "program") == 0)
        must(seccomp_export_bpf(read_filter(argv[3], architecture(argv[2])), STDOUT_FILENO), "seccomp_export_bpf");
    else if (argc == 3 && strcmp(argv[1], "numbers") == 0)
        print_numbers(architecture(argv[2]));
    else
        return 125;
    return 0;
}
