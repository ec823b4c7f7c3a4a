import type { FileStat, SandboxFiles } from '@sandlot/sandbox/files'
import { afterEach, expect, test, vi } from 'vitest'
import { FileSearch } from '../../src/workspace/search.ts'
import { collected } from '../support/collect-garbage.ts'
import { openLocalSandboxes } from '../tools/local-sandboxes.ts'

afterEach(() => void vi.useRealTimers())

test('the names of a workspace serve the next search, and leave memory with the last one', async () => {
  const opened = await openLocalSandboxes()
  try {
    const { files } = await opened.sandboxes.acquire('u_ada')
    await files.write('notes/today.md', Buffer.from('x'))
    const listed: WeakRef<FileStat>[] = []
    const withoutLinks: SandboxFiles = {
      ...files,
      async list(path) {
        const entries = await files.withoutLinks.list(path)
        listed.push(...entries.map((entry) => new WeakRef(entry)))
        return entries
      },
    }
    const search = new FileSearch()
    const find = async (): Promise<string[]> => {
      const { entries } = await search.find('u_ada', { ...files, withoutLinks }, 'today', 10)
      return entries.map(({ path }) => path)
    }
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    expect(await find()).toEqual(['notes/today.md'])
    const known = listed.length
    expect(await find()).toEqual(['notes/today.md'])
    expect(listed).toHaveLength(known)
    vi.advanceTimersByTime(5_000)
    for (const entry of listed) await collected(entry)
    expect(await find()).toEqual(['notes/today.md'])
    expect(listed.length).toBeGreaterThan(known)
  } finally {
    vi.useRealTimers()
    await opened.dispose()
  }
})
