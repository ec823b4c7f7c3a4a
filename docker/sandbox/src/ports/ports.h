/* Ports of programs inside: their list, and connections to them that the controller opens. */
#ifndef SBXD_PORTS_H
#define SBXD_PORTS_H

#include "../connections/connections.h"

void ports_connect(const struct frame *f);
void ports_list(const struct frame *f);

#endif
