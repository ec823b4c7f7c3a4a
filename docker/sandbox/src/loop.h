/* The loop without signals and its end: main.c and fuzz/ drive it. */
#ifndef SBXD_LOOP_H
#define SBXD_LOOP_H

#include "base.h"

/* Everything that a round needs. */
void loop_init(void);
/* For as long as sbxd runs. */
void loop_watch(int fd, struct source *src);
/* What is due, what may be sent, then a wait for events. */
void loop_round(uint64_t now_ms);

#endif
