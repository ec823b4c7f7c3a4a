/* The ports of programs inside: connections to them that the controller opens, and which there are. */
#ifndef SBXD_PORTS_H
#define SBXD_PORTS_H

#include "../connections/connections.h"

void ports_connect(const struct frame *f);
void ports_list(const struct frame *f);

#endif
