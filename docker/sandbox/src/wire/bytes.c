/*
 * Little-endian fields of payloads. A reader past its end sets `bad`, to be checked once at the
 * end.
 */
#include "wire.h"

#include <stdlib.h>

const uint8_t *rdn(struct reader *r, size_t n)
{
    if (r->bad || r->left < n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    r->left -= n;
    return p;
}

uint8_t rd8(struct reader *r)
{
    const uint8_t *p = rdn(r, 1);
    return p ? *p : 0;
}

uint16_t rd16(struct reader *r)
{
    const uint8_t *p = rdn(r, 2);
    return p ? (uint16_t)(p[0] | p[1] << 8) : 0;
}

uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t rd32(struct reader *r)
{
    const uint8_t *p = rdn(r, 4);
    return p ? get32(p) : 0;
}

uint64_t rd64(struct reader *r)
{
    const uint8_t *p = rdn(r, 8);
    return p ? (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32 : 0;
}

void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

void put32(uint8_t *p, uint32_t v)
{
    put16(p, (uint16_t)v);
    put16(p + 2, (uint16_t)(v >> 16));
}

void put64(uint8_t *p, uint64_t v)
{
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}

uint8_t *buf_add(struct buf *b, size_t n)
{
    if (b->len + n > b->cap) {
        size_t cap = b->cap ? b->cap : 512;
        while (cap < b->len + n)
            cap *= 2;
        uint8_t *p = realloc(b->p, cap);
        if (!p)
            die("out of memory");
        b->p = p;
        b->cap = cap;
    }
    uint8_t *at = b->p + b->len;
    b->len += n;
    return at;
}

void buf8(struct buf *b, uint8_t v) { *buf_add(b, 1) = v; }
void buf16(struct buf *b, uint16_t v) { put16(buf_add(b, 2), v); }
void buf32(struct buf *b, uint32_t v) { put32(buf_add(b, 4), v); }
void buf64(struct buf *b, uint64_t v) { put64(buf_add(b, 8), v); }

void buf_bytes(struct buf *b, const void *p, size_t n)
{
    if (n)
        memcpy(buf_add(b, n), p, n);
}
