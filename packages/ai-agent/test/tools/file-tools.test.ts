/**
 * File tools beyond one plain call: images, conflicts, several edits, pages of results, ignore
 * rules.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import fc from 'fast-check'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { imageInfo } from '../../src/tools/image-info.ts'
import type { ToolOutcome } from '../../src/tools/tool.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { hasRipgrep } from './local-sandboxes.ts'
import { emptySandbox, useSandboxes } from './use-sandboxes.ts'

const local = useSandboxes()
let batch: TestBatch
let sandbox: Sandbox
beforeEach(async () => {
  batch = new TestBatch({ sandboxes: () => local.sandboxes })
  sandbox = await emptySandbox(local)
})

const put = (path: string, content: string | Uint8Array) => sandbox.files.write(path, Buffer.from(content))
const content = async (path: string) => Buffer.from(await sandbox.files.read(path)).toString()
const text = (outcome: ToolOutcome): string => outcome.forModel

// One black pixel each, and what a longer file of the kind begins and ends with.
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==', 'base64')
const JPEG = Buffer.concat([
  Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0]),
  Buffer.from([0xff, 0xc0, 0, 11, 8, 0, 30, 0, 40, 1, 1, 17, 0]),
  Buffer.from([0xff, 0xd9]),
])

describe('images', () => {
  test('read_file shows an image to those who can see it, and says what it is to those who cannot', async () => {
    await put('a.png', PNG)
    expect(await batch.call('read_file', { path: 'a.png' })).toMatchObject({
      status: 'completed',
      forModel: `/workspace/a.png is an image (image/png, 1 × 1 pixels, ${PNG.length} bytes).`,
      content: [
        {
          type: 'content',
          content: { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' },
        },
      ],
    })
  })

  test('an image above what is read of a text at once is shown up to the limit of images', async () => {
    const [head, end] = [PNG.subarray(0, -12), PNG.subarray(-12)]
    await put('large.png', Buffer.concat([head, Buffer.alloc(3 * 1024 * 1024), end]))
    expect((await batch.call('read_file', { path: 'large.png' })).content).toHaveLength(1)
    await put('huge.png', Buffer.concat([head, Buffer.alloc(5 * 1024 * 1024), end]))
    const huge = await batch.call('read_file', { path: 'huge.png' })
    expect(huge.content).toBeUndefined()
    expect(text(huge)).toContain('a PNG image of 5,242,950 bytes')
  })

  test('the kinds and their sizes', () => {
    expect(imageInfo(GIF)).toEqual({ mimeType: 'image/gif', width: 1, height: 1 })
    expect(imageInfo(JPEG)).toEqual({ mimeType: 'image/jpeg', width: 40, height: 30 })
    const webp = Buffer.alloc(40)
    webp.write('RIFF', 0, 'latin1')
    webp.writeUInt32LE(32, 4)
    webp.write('WEBPVP8X', 8, 'latin1')
    webp.writeUIntLE(99, 24, 3)
    webp.writeUIntLE(49, 27, 3)
    expect(imageInfo(webp)).toEqual({ mimeType: 'image/webp', width: 100, height: 50 })
  })

  test('any part of an image that is not all of it is refused or harmless', () => {
    fc.assert(
      fc.property(fc.constantFrom(PNG, JPEG), fc.nat(200), (image, cut) => {
        if (cut < image.length - 20) expect(imageInfo(image.subarray(0, cut))).toBeUndefined()
      }),
    )
  })

  test('a picture with sides that no provider takes is refused in words', async () => {
    const wide = Buffer.from(PNG)
    wide.writeUInt32BE(9000, 16)
    await put('wide.png', wide)
    expect(text(await batch.call('read_file', { path: 'wide.png' }))).toContain('too large to be shown')
  })
})

describe('edit_file', () => {
  const edit = (more: Record<string, unknown>) => batch.call('edit_file', { path: 'a.txt', ...more })

  test('several edits in one call, each on what the one before made', async () => {
    await put('a.txt', 'one\ntwo\nthree')
    const edits = [
      { old_text: 'one', new_text: 'two' },
      { old_text: 'two\ntwo', new_text: 'both' },
    ]
    expect(text(await edit({ edits }))).toBe('Changed 2 places in /workspace/a.txt')
    expect(await content('a.txt')).toBe('both\nthree')
  })

  test('one edit that does not fit: none is made, and it is named', async () => {
    await put('a.txt', 'one\ntwo\n')
    const edits = [
      { old_text: 'one', new_text: '1' },
      { old_text: 'three', new_text: '3' },
    ]
    expect(text(await edit({ edits }))).toContain('edit 2 of 2; none was made')
    expect(await content('a.txt')).toBe('one\ntwo\n')
  })

  test('neither or both ways to say what to change', async () => {
    await put('a.txt', 'one\n')
    for (const more of [
      {},
      { old_text: 'one' },
      { old_text: 'one', new_text: '1', edits: [{ old_text: 'one', new_text: '1' }] },
    ])
      expect(await edit(more)).toMatchObject({ status: 'failed', reason: 'invalid_arguments' })
  })

  test('a file changed since the session read it is not edited; the second try is', async () => {
    await put('a.txt', 'one\ntwo\n')
    await batch.call('read_file', { path: 'a.txt' })
    await put('a.txt', 'zero\none\ntwo\n')
    const change = { old_text: 'two', new_text: '2' }
    expect(await edit(change)).toMatchObject({
      status: 'failed',
      reason: 'tool_error',
      forModel: expect.stringContaining(
        'was changed since you read it, so it was not edited. old_text is there now:\n3\ttwo',
      ),
    })
    expect(await content('a.txt')).toBe('zero\none\ntwo\n')
    expect((await edit(change)).status).toBe('completed')
    expect(await content('a.txt')).toBe('zero\none\n2\n')
  })

  test('what the session wrote or edited itself is known to it', async () => {
    await batch.call('write_file', { path: 'a.txt', content: 'one\ntwo\n' })
    expect((await edit({ old_text: 'one', new_text: '1' })).status).toBe('completed')
    expect((await edit({ old_text: 'two', new_text: '2' })).status).toBe('completed')
    await put('a.txt', 'other\n')
    expect(text(await edit({ old_text: '2', new_text: '3' }))).toContain('was changed since you read it')
  })

  test('any edit leaves every byte outside of it as it was', async () => {
    const part = fc.stringMatching(/^[ab\r\n\uFEFFé]{0,6}$/)
    await fc.assert(
      fc.asyncProperty(part, part, async (before, after) => {
        await put('a.txt', `${before}<old>${after}`)
        const fresh = new TestBatch({ sandboxes: () => local.sandboxes })
        const outcome = await fresh.call('edit_file', { path: 'a.txt', old_text: '<old>', new_text: '<$&>' })
        expect(outcome.status).toBe('completed')
        expect(await content('a.txt')).toBe(`${before}<$&>${after}`)
      }),
      { numRuns: 25 },
    )
  })
})

describe.skipIf(!hasRipgrep)('search_text and glob', () => {
  test('context lines', async () => {
    await put('a.txt', '1\n2\nhit\n4\n5\n')
    expect(text(await batch.call('search_text', { pattern: 'hit', context: 1 }))).toBe(
      'a.txt-2-2\na.txt:3:hit\na.txt-4-4',
    )
  })

  test('a literal pattern', async () => {
    await put('a.txt', 'a.b\naxb\n(\n')
    expect(text(await batch.call('search_text', { pattern: 'a.b', literal: true }))).toBe('a.txt:1:a.b')
    expect(text(await batch.call('search_text', { pattern: '(', literal: true }))).toBe('a.txt:3:(')
  })

  test('ignore rules hold without git, for globs too, until they are asked for', async () => {
    await put('.gitignore', '*.log\nout/\n')
    await put('a.log', 'word\n')
    await put('out/b.txt', 'word\n')
    await put('c.txt', 'word\n')
    expect(text(await batch.call('search_text', { pattern: 'word' }))).toBe('c.txt:1:word')
    expect(text(await batch.call('glob', { pattern: '**/*' }))).toBe('.gitignore\nc.txt')
    expect(text(await batch.call('glob', { pattern: '*.log' }))).toContain('No file in /workspace matches')
    expect(text(await batch.call('glob', { pattern: '*.log', include_ignored: true }))).toBe('a.log')
    const all = await batch.call('search_text', { pattern: 'word', include_ignored: true })
    expect(text(all)).toBe('a.log:1:word\nc.txt:1:word\nout/b.txt:1:word')
  })

  test('pages: the notice says how to go on, and together they are everything', async () => {
    await put('a.txt', Array.from({ length: 950 }, (_, index) => `hit ${index}`).join('\n'))
    const found: string[] = []
    let offset: number | undefined = 0
    for (let page = 0; offset !== undefined && page < 30; page++) {
      const shown = text(await batch.call('search_text', { pattern: 'hit', offset, limit: 400 }))
      expect(shown.length).toBeLessThanOrEqual(10_000)
      found.push(...shown.split('\n').filter((line) => line.startsWith('a.txt:')))
      offset = Number(/Go on with offset (\d+)/.exec(shown)?.[1] ?? 0) || undefined
    }
    expect(found.map((line) => line.split(':')[2])).toEqual(
      Array.from({ length: 950 }, (_, index) => `hit ${index}`),
    )
    expect(text(await batch.call('search_text', { pattern: 'hit', offset: 2000 }))).toBe(
      'There are no more than 2,000 results.',
    )
  })

  test('glob is limited', async () => {
    for (const name of ['a', 'b', 'c']) await put(`${name}.txt`, '')
    expect(text(await batch.call('glob', { pattern: '*.txt', limit: 2 }))).toBe(
      'a.txt\nb.txt\n[There is more: these are results 1–2. Go on with offset 2, or look for less.]',
    )
    expect(text(await batch.call('glob', { pattern: '*.txt', limit: 2, offset: 2 }))).toBe('c.txt')
  })
})
