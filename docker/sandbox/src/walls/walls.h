/* Walls: the limits and the system call filter that sbxd sets itself, alike on every engine. */
#ifndef SBXD_WALLS_H
#define SBXD_WALLS_H

#include "../base.h"

/* Handles the arguments --limit-NAME and --profile; false for another one. Exits at a bad value. */
bool walls_argument(const char *name, const char *value);
/*
 * Reads the mark of the debug profile. As PID 1: loads the filter into sbxd, so that all commands
 * inherit it. Exits where that fails. Call it once, before there is a second thread.
 */
void walls_raise(void);
/*
 * For a command that may not trace, in the child before exec: adds the default filter where sbxd
 * itself has the debug filter. Only makes a system call. False with errno on failure.
 */
bool walls_forbid_tracing(void);

#endif
