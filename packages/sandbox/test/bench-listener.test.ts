import { readFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { listenerAt } from '../bench/listener.ts'

test('of all processes the one that listens there is found, through a link too, and only under its name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-listener-'))
  const path = join(folder, 'a.sock')
  const server = createServer().listen(path)
  await once(server, 'listening')
  try {
    const name = readFileSync(`/proc/${process.pid}/comm`, 'utf8').trim()
    symlinkSync(folder, join(folder, 'link'))
    expect(listenerAt(path, name)).toBe(process.pid)
    expect(listenerAt(join(folder, 'link', 'a.sock'), name)).toBe(process.pid)
    expect(listenerAt(path, 'dockerd')).toBeUndefined()
    expect(listenerAt(join(folder, 'b.sock'), name)).toBeUndefined()
  } finally {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
