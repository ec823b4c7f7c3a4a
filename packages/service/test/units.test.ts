import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { ConfigError } from '@sandlot/shared/config'
import { describe, expect, test } from 'vitest'
import { readServiceConfig } from '../src/config.ts'
import { Cursor } from '../src/chat/cursor.ts'
import { readRange } from '../src/http/workspace/range.ts'
import { ensureSecret, secretsEqual } from '@sandlot/shared/node/secret-file'
import { makeLog } from '../src/log.ts'
import { originRule } from '../src/auth/origin.ts'
import { makeScrubber } from '@sandlot/shared/base/scrub'

describe('a cursor', () => {
  test('passes each event once and in order, whatever an older load still sends between', () => {
    const mixed = fc
      .record({ after: fc.nat(5), missed: fc.nat(10), picks: fc.array(fc.boolean(), { maxLength: 30 }) })
      .map(({ after, missed, picks }) => {
        const load = Array.from({ length: missed + 5 }, (_, index) => after + 1 + index)
        const older = Array.from({ length: 10 }, (_, index) => after + missed + 1 + index)
        const sent: number[] = []
        for (const pick of picks) {
          const next = pick ? load.shift() : older.shift()
          if (next !== undefined) sent.push(next)
        }
        return { after, sent: [...sent, ...load] }
      })
    fc.assert(
      fc.property(mixed, ({ after, sent }) => {
        const cursor = new Cursor(after)
        const passed = sent.filter((seq) => cursor.take(seq))
        expect(passed).toEqual(passed.map((_, index) => after + 1 + index))
        expect(cursor.upTo).toBe(after + passed.length)
        expect(cursor.upTo).toBeGreaterThanOrEqual(sent.at(-1) ?? 0)
      }),
    )
  })

  test('a prompt that ends between a resume and its load: the end comes behind what the load brings', () => {
    const cursor = new Cursor(3)
    cursor.restart(0)
    expect([4, 1, 2, 3, 4].filter((seq) => cursor.take(seq))).toEqual([1, 2, 3, 4])
  })

  test('that knows nothing begins with what comes first', () => {
    const cursor = new Cursor()
    expect(cursor.take(41)).toBe(true)
    expect(cursor.upTo).toBe(41)
  })
})

describe('ranges', () => {
  test.each([
    [undefined, 'all'],
    ['bytes=0-0', { from: 0, to: 1 }],
    ['bytes=2-', { from: 2, to: 10 }],
    ['bytes=2-99', { from: 2, to: 10 }],
    ['bytes=-3', { from: 7, to: 10 }],
    ['bytes=-99', { from: 0, to: 10 }],
    ['bytes=-0', 'none'],
    ['bytes=10-', 'none'],
    ['bytes=5-2', 'all'],
    ['bytes=-', 'all'],
    ['bytes=0-1,4-5', 'all'],
    ['lines=0-1', 'all'],
  ])('%s of ten bytes', (header, expected) => {
    expect(readRange(header, 10)).toEqual(expected)
  })

  test('any range lies inside', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.option(fc.nat()), fc.nat(1000), (junk, first, last, size) => {
        for (const header of [`bytes=${first}-${last ?? ''}`, `bytes=-${first}`, junk]) {
          const range = readRange(header, size)
          if (typeof range === 'string') continue
          expect(range.from).toBeGreaterThanOrEqual(0)
          expect(range.from).toBeLessThan(range.to)
          expect(range.to).toBeLessThanOrEqual(size)
        }
      }),
    )
  })
})

describe('origins', () => {
  const isOurs = originRule('https://chat.example.org', ['https://other.example'])
  test.each([
    ['http://127.0.0.1:8002', '127.0.0.1:8002', true],
    ['https://chat.example.org', 'internal:8002', true],
    ['https://other.example', '127.0.0.1:8002', true],
    ['http://chat.example.org', 'internal:8002', false],
    ['https://evil.example', '127.0.0.1:8002', false],
    ['http://127.0.0.1:8003', '127.0.0.1:8002', false],
    ['http://127.0.0.1:8002.evil.example', '127.0.0.1:8002', false],
    ['null', '127.0.0.1:8002', false],
    ['', '', false],
    ['file://127.0.0.1:8002', '127.0.0.1:8002', false],
    ['https://evil.example', undefined, false],
  ])('%s to %s: %s', (origin, host, ours) => {
    expect(isOurs(origin, host)).toBe(ours)
  })
})

describe('the scrubber', () => {
  const scrub = makeScrubber(['a-configured-secret-value', 'short'])

  test('hides configured values and what looks like a key, wherever it stands', () => {
    const lines: string[] = []
    const log = makeLog('info', scrub, (line) => lines.push(line))
    const key = `sk-sandlot-${'a1'.repeat(20)}`
    log.info({ deep: { er: { apiKey: key } }, list: ['a-configured-secret-value'] }, `used ${key}`)
    log.error({ err: new Error('Bearer abcdefghijklmno was refused') }, 'failed')
    log.info(
      { url: '/setup?token=abcdefgh&x=1', cookie: 'sandlot.session_token=abc.def%3D; theme=dark' },
      'seen',
    )
    const text = lines.join('')
    for (const secret of [key, 'a-configured-secret-value', 'abcdefghijklmno', 'token=abcdefgh', 'abc.def']) {
      expect(text).not.toContain(secret)
    }
    for (const line of lines) JSON.parse(line)
    expect(text).toContain('theme=dark')
  })

  test('leaves other text alone', () => {
    const text = 'a short task-sk of basket-weaving, token count 12, bearer of news'
    expect(scrub(text)).toBe(text)
  })
})

describe('kept secrets', () => {
  test('are made once, also by several starts together', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sandlot-keys-'))
    const made = await Promise.all(Array.from({ length: 8 }, () => ensureSecret(join(folder, 'keys'), 'one')))
    expect(new Set(made).size).toBe(1)
    expect(await ensureSecret(join(folder, 'keys'), 'one')).toBe(made[0])
    expect(await readdir(join(folder, 'keys'))).toEqual(['one'])
    await writeFile(join(folder, 'keys', 'cut'), 'half')
    await expect(ensureSecret(join(folder, 'keys'), 'cut')).rejects.toThrow(/cut short/)
    await rm(folder, { recursive: true })
  })

  test('are compared whole', () => {
    expect(secretsEqual('abc', 'abc')).toBe(true)
    expect(secretsEqual('abc', 'abcd')).toBe(false)
    expect(secretsEqual('', 'a')).toBe(false)
  })
})

describe('configuration', () => {
  test('works with none set', () => {
    const config = readServiceConfig({})
    expect(config).toMatchObject({ host: '127.0.0.1', port: 8002, logLevel: 'info', publicUrl: undefined })
    expect(config.agentUrl).toMatch(/^ws\+unix:\/\/\/.*\/\.sandlot\/run\/agent\.sock:\/acp$/)
  })

  test('keeps origins as origins', () => {
    const config = readServiceConfig({
      SANDLOT_PUBLIC_URL: 'https://chat.example.org/',
      SANDLOT_ALLOWED_ORIGINS: 'https://a.example, http://b.example:81/, https://c.example/chat?a',
    })
    expect(config.publicUrl).toBe('https://chat.example.org')
    expect(config.allowedOrigins).toEqual(['https://a.example', 'http://b.example:81', 'https://c.example'])
  })

  test('has no path in its own address', () => {
    for (const url of ['https://example.org/sandlot', 'https://example.org/?a', 'https://ada@example.org'])
      expect(() => readServiceConfig({ SANDLOT_PUBLIC_URL: url })).toThrow(
        'SANDLOT_PUBLIC_URL: must end after the host',
      )
  })

  test('has no keys made anew in another folder while the data folder has some', async () => {
    const data = await mkdtemp(join(tmpdir(), 'sandlot-keys-'))
    const read = () => readServiceConfig({ SANDLOT_DATA: data, SANDLOT_KEYS_DIR: join(data, 'shared') })
    expect(read().keysFolder).toBe(join(data, 'shared'))
    await ensureSecret(join(data, 'keys'), 'service-cookies')
    expect(read).toThrow('move the keys there')
    await ensureSecret(join(data, 'shared'), 'service-cookies')
    expect(read().keysFolder).toBe(join(data, 'shared'))
    await rm(data, { recursive: true })
  })

  test('names every problem at once', () => {
    const read = () =>
      readServiceConfig({ PORT: '80000', LOG_LEVEL: 'loud', SANDLOT_PUBLIC_URL: 'chat', SANDLOT_DATTA: 'x' })
    expect(read).toThrow(ConfigError)
    for (const name of [
      /PORT: .*65535/,
      /LOG_LEVEL/,
      /SANDLOT_PUBLIC_URL: .*example\.org/,
      /did you mean SANDLOT_DATA/,
    ]) {
      expect(read).toThrow(name)
    }
  })
})
