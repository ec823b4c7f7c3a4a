/* Egress: a listener inside whose connections are channels that we open. */
#ifndef SBXD_EGRESS_H
#define SBXD_EGRESS_H

#include "../connections/connections.h"

/*
 * Once per round, after the wire was pumped: polls the listener if a connection could be accepted.
 */
void egress_poll_listener(uint64_t now_ms);
void egress_timers(uint64_t now_ms);
/* A new controller: the listener stays for a while. */
void egress_forget(void);
void egress_listen(const struct frame *f);
void egress_result(const struct frame *f);

#endif
