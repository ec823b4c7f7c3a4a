/* The loop without signals and shutdown: main.c and fuzz/ drive it. */
#ifndef SBXD_LOOP_H
#define SBXD_LOOP_H

#include "base.h"

/* Initializes everything for the rounds. */
void loop_init(void);
/* Watches it for the life of sbxd. */
void loop_watch(int fd, struct source *src);
/* Runs due timers, sends, then waits for events. */
void loop_round(uint64_t now_ms);

#endif
