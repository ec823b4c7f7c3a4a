/* What becomes of a command's output on its way out: see output.c. */
#ifndef SBXD_OUTPUT_H
#define SBXD_OUTPUT_H

#include "../sbxd.h"

/* Head and tail of one stream together; they must fit into the smallest window. */
#define CUT_MAX WINDOW_MIN

enum policy_kind { POLICY_STREAM, POLICY_CUT, POLICY_LIMIT };
struct policy {
    enum policy_kind kind;
    uint32_t head, tail; /* CUT: bytes kept of each stream */
    uint64_t limit;      /* LIMIT: bytes of both streams together */
};

/* Where bytes that are read from the pipe go: 0 when there is no room now, else the number of pieces. */
int output_room(struct command *c, struct stream *s, struct iovec v[2]);
/* Shorten these pieces to `most` bytes together; returns how many pieces are left. */
int output_shorten(struct iovec v[2], int n, uint64_t most);
/* So many bytes were read into these pieces. */
void output_took(struct command *c, struct stream *s, const struct iovec v[2], size_t n);
/* The ring that holds the next bytes to send, which end before `upto`; NULL when nothing may be sent. */
const struct ring *output_next(struct command *c, struct stream *s, uint64_t *upto);
/* Bytes of a cut stream that were counted and not kept: from, and the first one that is kept again. */
bool output_gap(const struct command *c, const struct stream *s, uint64_t *from, uint64_t *to);
/* Once a loop round, when what may be sent is on its way. */
void hash_behind(struct stream *s);
/* Whatever is in the ring is hashed when it returns, and only the loop has its hands on the stream … */
void hash_all(struct stream *s);
/* … or all below this offset is. */
void hash_upto(struct stream *s, uint64_t offset);
/* Forget what is acknowledged. */
void output_drop(const struct command *c, struct stream *s);

#endif
