/* CRC-32C (Castagnoli, reflected, table of eight) and HMAC-SHA256 (RFC 2104). */
#include "wire.h"

static uint32_t crc_table[8][256];

static void crc_init(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
        crc_table[0][i] = c;
    }
    for (int t = 1; t < 8; t++)
        for (int i = 0; i < 256; i++)
            crc_table[t][i] = crc_table[t - 1][i] >> 8 ^ crc_table[0][crc_table[t - 1][i] & 255];
}

/* The plain register: no inversion at either end, the start value is the caller's. */
uint32_t crc32c(uint32_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;
    if (!crc_table[0][1])
        crc_init();
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t a = get32(p) ^ crc, b = get32(p + 4);
        crc = crc_table[7][a & 255] ^ crc_table[6][a >> 8 & 255] ^ crc_table[5][a >> 16 & 255] ^ crc_table[4][a >> 24] ^
              crc_table[3][b & 255] ^ crc_table[2][b >> 8 & 255] ^ crc_table[1][b >> 16 & 255] ^ crc_table[0][b >> 24];
    }
    for (; n; n--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *p++) & 255];
    return crc;
}

static void sha256_two(const uint8_t *a, size_t an, const uint8_t *b, size_t bn, uint8_t out[32])
{
    struct sha256 h = {0};
    sha256_add(&h, a, an);
    sha256_add(&h, b, bn);
    sha256_end(&h, out);
}

void hmac_sha256(const uint8_t key[KEY_BYTES], const void *data, size_t n, uint8_t out[32])
{
    uint8_t pad[64], inner[32];
    for (int i = 0; i < 64; i++)
        pad[i] = 0x36 ^ (i < KEY_BYTES ? key[i] : 0);
    sha256_two(pad, 64, data, n, inner);
    for (int i = 0; i < 64; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    sha256_two(pad, 64, inner, 32, out);
    explicit_bzero(pad, sizeof pad);
}

bool equal_secret(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint8_t diff = 0;
    for (size_t i = 0; i < n; i++)
        diff |= a[i] ^ b[i];
    return diff == 0;
}
