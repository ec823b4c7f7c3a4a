/*
 * Flow control for floods. A command that writes as fast as it can and a reader that wakes for each
 * piece spend their time waking each other, and so does every process after them: sbxd, the
 * engine's copiers, the controller. During a flood the loop sleeps briefly in each round, in which
 * the pipes fill, and every reader finds a long run.
 */
#include "commands.h"

#include <unistd.h>

#define FLOOD_BYTES (64u << 10) /* this many … */
#define FLOOD_US 1000           /* … in this time are a flood, … */
#define LASTS_US 5000           /* … which ends after this time without as many */
#define REST_US 300

static size_t taken;
static uint64_t since, until;

void flood_count(size_t bytes)
{
    taken += bytes;
    if (taken < FLOOD_BYTES)
        return;
    uint64_t now = now_us();
    if (now - since < FLOOD_US)
        until = now + LASTS_US;
    since = now;
    taken = 0;
}

void flood_pause(void)
{
    if (until && now_us() < until)
        usleep(REST_US);
    else
        until = 0;
}
