/*
 * The interface between sbxd and the library that it preloads into a session's bash
 * (session/session.c).
 */
#ifndef SBXD_SESSION_H
#define SBXD_SESSION_H

#include <stdint.h>

#define SESSION_BYTES (256u << 10) /* the shared memory, and the maximum stored of one session */
#define SESSION_FD_NAME "SANDLOT_SESSION_FD"
/* Before the name of a variable that the loader must not see yet */
#define SESSION_LATER "SANDLOT_SESSION_LATER_"

enum session_state { SESSION_NOTHING = 0, SESSION_WRITING = 1, SESSION_WHOLE = 2, SESSION_TOO_BIG = 3 };

/*
 * At the beginning of the memory. Then, each ended by NUL: the directory ("" when it is missing)
 * and `NAME=value` entries.
 */
struct session_head {
    uint32_t state;
    uint32_t length; /* of everything, this head included */
};

#endif
