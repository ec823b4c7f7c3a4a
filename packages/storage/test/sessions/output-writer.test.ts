import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openSessionStore } from '../../src/store/open.ts'

test.each([
  ['a Buffer', Buffer.from('what was printed')],
  ['a part of a longer one', Buffer.from('>> what was printed <<').subarray(3, -3)],
  ['plain bytes', new TextEncoder().encode('what was printed')],
])(
  'bytes of a command are kept as they were given, also when the caller uses %s again once they are stored',
  async (_name, bytes) => {
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-output-'))
    const store = await openSessionStore(join(folder, 'sessions.db'))
    await store.sessions.create({ id: 's', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 1 })
    await store.outputs.append('s', 'c', 0, bytes)
    bytes.fill(0)
    const read = await store.outputs.read('s', 'c', 0, 100)
    expect(Buffer.from(read).toString()).toBe('what was printed')
    await store.close()
    rmSync(folder, { recursive: true })
  },
)

test('much output is written at once, and what comes meanwhile right behind it: no clock is waited for', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-output-'))
  const store = await openSessionStore(join(folder, 'sessions.db'))
  await store.sessions.create({ id: 's', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 1 })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const size = 300 * 1024
    await Promise.all([0, 1, 2].map((n) => store.outputs.append('s', 'c', n * size, Buffer.alloc(size, n))))
    expect(await store.outputs.get('s', 'c')).toMatchObject({ storedBytes: 3 * size })
  } finally {
    vi.useRealTimers()
  }
  await store.close()
  rmSync(folder, { recursive: true })
})
