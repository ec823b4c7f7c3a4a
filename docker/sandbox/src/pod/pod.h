/*
 * sbxd in a Pod of Kubernetes: its wire is a connection of a relay, which the node's runtime starts
 * inside for each stream of a controller.
 */
#ifndef SBXD_POD_H
#define SBXD_POD_H

#include "../base.h"

/* Abstract, in the network namespace of the Pod. */
#define SOCKET_NAME "\0sandlot-sbxd"
struct sockaddr_un;
/* Fills it; returns its length. */
unsigned socket_address(struct sockaddr_un *address);

/* ---- listen.c -------------------------------------------------------------------------------- */

/* Replaces stdin and stdout. */
void listen_init(void);
/* Closes what is due. Milliseconds until there is more; -1: nothing waits. */
int listen_timers(uint64_t now_ms);

/* ---- programs of their own; the result is the exit code --------------------------------------- */

int relay(void);
int network_down(void);
int make_home(const char *uid);

#endif
