/*
 * What acknowledged commands came to. A controller whose store has lost that a command ran starts
 * it again under the same id, and gets the end of the first run in place of a second one. An id
 * never stands for anything else, so none is forgotten for its age: the memory for REMEMBERED of
 * them is always the same, and taken page by page as commands end. It ends with sbxd: another boot
 * knows no command of this one.
 */
#include "commands.h"

#include <stdlib.h>

/* Apart, so that looking for an id reads little memory. */
static uint8_t ids[REMEMBERED][ID_BYTES];
static struct {
    uint32_t asked;
    uint16_t exit_bytes;
    uint8_t started[STARTED_BYTES], exit[EXIT_MOST];
} ends[REMEMBERED];
static size_t count, next;

void command_remember(struct command *c)
{
    struct buf started = {0}, exit = {0};
    for (int i = 0; i < 2; i++)
        c->out[i].sent = c->out[i].total; /* its bytes are gone: none is to come */
    command_write_started(c, true, &started);
    exit_write(c, &exit);
    if (started.len != STARTED_BYTES || exit.len > EXIT_MOST) {
        errno = EMSGSIZE;
        die("remember");
    }
    memcpy(ids[next], c->id, ID_BYTES);
    memcpy(ends[next].started, started.p, started.len);
    memcpy(ends[next].exit, exit.p, exit.len);
    ends[next].exit_bytes = (uint16_t)exit.len;
    ends[next].asked = c->asked;
    next = (next + 1) % REMEMBERED;
    if (count < REMEMBERED)
        count++;
    free(started.p);
    free(exit.p);
}

bool remembered_answer(uint32_t channel, const uint8_t *id, const uint32_t *asked)
{
    for (size_t back = 1; back <= count; back++) { /* the newest first */
        size_t i = (next + REMEMBERED - back) % REMEMBERED;
        if (memcmp(ids[i], id, ID_BYTES) != 0 || (asked && ends[i].asked != *asked))
            continue;
        frame_out(T_STARTED, 0, channel, ends[i].started, STARTED_BYTES);
        frame_out(T_EXIT, 0, channel, ends[i].exit, ends[i].exit_bytes);
        return true;
    }
    return false;
}

void remembered_forget(void) { count = next = 0; }
