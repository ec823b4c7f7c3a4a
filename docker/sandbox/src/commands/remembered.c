/*
 * Results of acknowledged commands. A controller whose store has lost that a command ran starts it
 * again under the same id, and receives the end of the first run instead of a second one. An id is
 * never reused, so none expires: the memory for REMEMBERED of them is constant, and allocated page
 * by page as commands end. It ends with sbxd: another boot knows no command of this one.
 */
#include "commands.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct end {
    uint8_t id[ID_BYTES];
    uint32_t asked;
    uint16_t older; /* the previous one in its chain, by its index from 1; 0: none */
    uint16_t exit_bytes;
    uint8_t started[STARTED_BYTES], exit[EXIT_MOST];
} *ends;
static uint16_t newest[REMEMBERED]; /* of each chain: of ids that begin alike */
static size_t count, next;

static uint16_t *chain_of(const uint8_t *id) { return &newest[(id[0] | id[1] << 8) % REMEMBERED]; }

/* On pages that shims start without, so that many ends make no fork slower. */
static void take_memory(void)
{
    size_t bytes = REMEMBERED * sizeof *ends;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die("remember");
    madvise(p, bytes, MADV_DONTFORK);
    ends = p;
}

/* Takes the oldest of all out of its chain, where it is the last. */
static void forget_oldest(void)
{
    uint16_t *at = chain_of(ends[next].id);
    while (*at != next + 1)
        at = &ends[*at - 1].older;
    *at = 0;
}

void command_remember(struct command *c)
{
    struct buf started = {0}, exit = {0};
    for (int i = 0; i < 2; i++)
        c->out[i].sent = c->out[i].total; /* its bytes are discarded: none follow */
    command_write_started(c, true, &started);
    exit_write(c, &exit);
    if (started.len != STARTED_BYTES || exit.len > EXIT_MOST) {
        errno = EMSGSIZE;
        die("remember");
    }
    if (!ends)
        take_memory();
    if (count == REMEMBERED)
        forget_oldest();
    else
        count++;
    uint16_t *chain = chain_of(c->id);
    struct end *e = &ends[next];
    *e = (struct end){.asked = c->asked, .older = *chain, .exit_bytes = (uint16_t)exit.len};
    memcpy(e->id, c->id, ID_BYTES);
    memcpy(e->started, started.p, started.len);
    memcpy(e->exit, exit.p, exit.len);
    *chain = (uint16_t)(next + 1);
    next = (next + 1) % REMEMBERED;
    free(started.p);
    free(exit.p);
}

bool remembered_answer(uint32_t channel, const uint8_t *id, const uint32_t *asked)
{
    for (uint16_t at = *chain_of(id); at; at = ends[at - 1].older) {
        const struct end *e = &ends[at - 1];
        if (memcmp(e->id, id, ID_BYTES) != 0 || (asked && e->asked != *asked))
            continue;
        frame_out(T_STARTED, 0, channel, e->started, STARTED_BYTES);
        frame_out(T_EXIT, 0, channel, e->exit, e->exit_bytes);
        return true;
    }
    return false;
}

void remembered_forget(void)
{
    count = next = 0;
    memset(newest, 0, sizeof newest);
}
