/*
 * SHA-256 (FIPS 180-4), in portable C, and with the SHA instructions of x86-64 where available.
 * Every byte of a command's output is hashed, so it must keep up with a pipe.
 */
#include "wire.h"

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static const uint32_t FIRST[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t ror(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void portable_blocks(uint32_t h[8], const uint8_t *p, size_t blocks)
{
    for (; blocks; blocks--, p += 64) {
        uint32_t w[64], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], k = h[7];
        for (int i = 0; i < 16; i++)
            w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
        for (int i = 16; i < 64; i++) {
            uint32_t x = w[i - 15], y = w[i - 2];
            w[i] = w[i - 16] + (ror(x, 7) ^ ror(x, 18) ^ x >> 3) + w[i - 7] + (ror(y, 17) ^ ror(y, 19) ^ y >> 10);
        }
        for (int i = 0; i < 64; i++) {
            uint32_t t1 = k + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
            uint32_t t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            k = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
        }
        h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += k;
    }
}

#ifdef __x86_64__
#include <immintrin.h>

/*
 * The instructions expect the state in two registers, ABEF and CDGH; one round instruction is two
 * rounds.
 */
__attribute__((target("sha,sse4.1"))) static void x86_blocks(uint32_t h[8], const uint8_t *p, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)h), 0xB1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(h + 4)), 0x1B);
    __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, dcba, 0xF0);
    for (; blocks; blocks--, p += 64) {
        __m128i abef0 = abef, cdgh0 = cdgh, w[4];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i *now = &w[i & 3];
            if (i < 4) {
                *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
            } else {
                /* Four words of the schedule from the sixteen before them. */
                __m128i w9 = _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4);
                *now = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) & 3]), w9);
                *now = _mm_sha256msg2_epu32(*now, w[(i + 3) & 3]);
            }
            __m128i wk = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef0);
        cdgh = _mm_add_epi32(cdgh, cdgh0);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)(void *)h, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(void *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#include <cpuid.h>

static bool has_x86_sha(void)
{
    static int known = -1;
    unsigned a, b, c, d;
    if (known < 0)
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA && __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_1;
    return known;
}
#endif

static void add_blocks(uint32_t h[8], const uint8_t *p, size_t blocks)
{
#ifdef __x86_64__
    if (has_x86_sha()) {
        x86_blocks(h, p, blocks);
        return;
    }
#endif
    portable_blocks(h, p, blocks);
}

void sha256_add(struct sha256 *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    if (s->bytes == 0)
        memcpy(s->h, FIRST, sizeof FIRST);
    size_t kept = s->bytes % 64;
    s->bytes += n;
    if (kept) {
        size_t take = n < 64 - kept ? n : 64 - kept;
        if (take)
            memcpy(s->block + kept, p, take);
        if (kept + take < 64)
            return;
        add_blocks(s->h, s->block, 1);
        p += take;
        n -= take;
    }
    add_blocks(s->h, p, n / 64);
    if (n % 64)
        memcpy(s->block, p + n / 64 * 64, n % 64);
}

void sha256_end(const struct sha256 *s, uint8_t out[32])
{
    uint32_t h[8];
    uint8_t last[128] = {0};
    size_t kept = s->bytes % 64, blocks = kept < 56 ? 1 : 2;
    memcpy(h, s->bytes ? s->h : FIRST, sizeof h);
    memcpy(last, s->block, kept);
    last[kept] = 0x80;
    for (int i = 0; i < 8; i++)
        last[blocks * 64 - 1 - (size_t)i] = (uint8_t)(s->bytes * 8 >> 8 * i);
    add_blocks(h, last, blocks);
    for (int i = 0; i < 32; i++)
        out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
