/** Instructions in a real workspace, with a real store: what is read, cut, stored and said. */
import { join } from 'node:path'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { Project } from '@sandlot/shared/chat/chats'
import type { InstructionFile } from '@sandlot/shared/chat/instruction-files'
import type { Rule } from '@sandlot/shared/chat/rules'
import type { InstructionRows } from '@sandlot/storage/people/instructions'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { openSessionStore } from '@sandlot/storage/store/open'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fileFolder } from '../../../../test/folders.ts'
import { instructionsFor } from '../../src/config/instructions.ts'
import { AgentBench, ask, happened, newSession } from '../support/agent-fixture.ts'
import { textAnswer } from '../support/fake-provider.ts'
import { type LocalSandboxes, openLocalSandboxes } from '../tools/local-sandboxes.ts'
import { emptySandbox, runIn } from '../tools/use-sandboxes.ts'

const USER = 'u_test'
const MOST = 32 * 1024
/** Time of the first reading, and its words. */
const AT = Date.UTC(2026, 10, 29, 9)
const AS_READ = 'as read at 2026-11-29T09:00:00.000Z'

let local: LocalSandboxes
let store: SessionStore
let closed: SessionStore
let sandbox: Sandbox
/** Times at which requests were sent. */
let exchanges = 0
let sending = false
let now = AT
let rules: Rule[] = []
let warned: unknown[] = []

beforeAll(async () => {
  const passing = (piece: Buffer): Buffer => {
    if (!sending) exchanges++
    sending = true
    setImmediate(() => (sending = false))
    return piece
  }
  const idle = { pauseAfterMs: 400, stopAfterMs: 0 }
  local = await openLocalSandboxes({ idle }, passing, true)
  const folder = fileFolder('instruction-files')
  store = await openSessionStore(join(folder, 'sessions.db'))
  closed = await openSessionStore(join(folder, 'closed.db'))
  await closed.close()
}, 60_000)
afterAll(async () => {
  await local.dispose()
  await store.close()
})
beforeEach(async () => {
  await store.people.instructions.changeFiles(USER, AT, () => '')
  sandbox = await emptySandbox(local, USER)
  now = AT
  rules = []
  warned = []
})

interface Change {
  folder?: string
  awake?: () => Promise<Sandbox | undefined>
  rows?: InstructionRows
}

function read({ folder, awake, rows }: Change = {}) {
  const project: Project | undefined =
    folder === undefined
      ? undefined
      : { id: 'p', name: 'P', folder, instructions: '', mode: null, model: null }
  return instructionsFor(USER, {
    deployment: { operator: '', team: '' },
    ofUser: async () => '',
    project: Promise.resolve(project),
    workspace: {
      awake: awake ?? ((userId) => local.sandboxes.connected(userId)),
      rows: rows ?? store.people.instructions,
      rulesOf: async () => rules,
      now: () => now,
      log: { warn: (fields) => warned.push(fields) },
    },
  })
}

const write = (path: string, text: string | Uint8Array) => sandbox.files.write(path, Buffer.from(text))
const shell = (command: string) => runIn(sandbox, command)
/** Titles and texts of files, without the project's section. */
const sections = (text: string) =>
  text
    .split(/^From (?=\S+ in the workspace)/m)
    .slice(1)
    .map((section) => section.trim())

describe('which files', () => {
  test('from the root down to the chat’s folder, CLAUDE.md only where it is alone', async () => {
    await write('AGENTS.md', 'Root.')
    await write('CLAUDE.md', 'Not read.')
    await write('a/CLAUDE.md', 'In a.')
    await write('a/b/AGENTS.md', '')
    await write('a/b/CLAUDE.md', 'Not read.')
    await write('a/b/c/AGENTS.md', 'In c.')
    await write('a/b/c/d/AGENTS.md', 'Below.')
    await write('other/AGENTS.md', 'Other.')
    const { text, files } = await read({ folder: 'a/b/c' })
    expect(sections(text)).toEqual([
      'AGENTS.md in the workspace:\n\nRoot.',
      'a/CLAUDE.md in the workspace, which overrides those of the folders above it:\n\nIn a.',
      'a/b/c/AGENTS.md in the workspace, which overrides those of the folders above it:\n\nIn c.',
    ])
    expect(files).toEqual([
      { path: 'AGENTS.md', bytes: 5 },
      { path: 'a/CLAUDE.md', bytes: 5 },
      { path: 'a/b/AGENTS.md', bytes: 0 },
      { path: 'a/b/c/AGENTS.md', bytes: 5 },
    ])
    expect((await read()).files).toEqual([{ path: 'AGENTS.md', bytes: 5 }])
  })

  test('those of all folders are one exchange with the sandbox', async () => {
    await write('AGENTS.md', 'Root.')
    await write('a/b/AGENTS.md', 'Near.')
    exchanges = 0
    const { files } = await read({ folder: 'a/b' })
    expect([files?.length, exchanges]).toEqual([2, 1])
  })

  test('a byte order mark and CRLF are no part of a text; other encodings, data and directories are said', async () => {
    await write('AGENTS.md', '\uFEFFUse\r\ntabs.')
    await write('a/AGENTS.md', Buffer.from('\uFEFFHi', 'utf16le'))
    await write('a/b/AGENTS.md', new Uint8Array([0x41, 0xff, 0x42]))
    await sandbox.files.mkdir('a/b/c/AGENTS.md')
    const { text, files } = await read({ folder: 'a/b/c' })
    expect(sections(text)[0]).toBe('AGENTS.md in the workspace:\n\nUse\ntabs.')
    expect(sections(text)[2]).toMatch(/\n\n\[It cannot be read: it is not UTF-8 text\.\]$/)
    expect(files?.slice(1)).toEqual([
      { path: 'a/AGENTS.md', unreadable: 'not_text' },
      { path: 'a/b/AGENTS.md', unreadable: 'not_text' },
      { path: 'a/b/c/AGENTS.md', unreadable: 'not_file' },
    ])
  })
})

describe('links', () => {
  test('are followed within the workspace, in every part of the path', async () => {
    await write('docs/rules.md', 'Linked.')
    await shell('ln -s docs/rules.md AGENTS.md; mkdir real; ln -s real a; echo Near. > real/CLAUDE.md')
    const { files } = await read({ folder: 'a' })
    expect(files).toEqual([
      { path: 'AGENTS.md', bytes: 7 },
      { path: 'a/CLAUDE.md', bytes: 6 },
    ])
  })

  test('out of it are not followed and said; one to nothing is none', async () => {
    await shell('mkdir -p a b; ln -s /etc/passwd AGENTS.md; ln -s ../../../../../etc/passwd a/AGENTS.md')
    await shell('ln -s nothing b/AGENTS.md; mkdir a/b; ln -s /etc a/b/c')
    const { text, files } = await read({ folder: 'a/b/c' })
    expect(text).not.toContain('root:')
    expect(sections(text)[0]).toBe(
      'AGENTS.md in the workspace:\n\n[It cannot be read: it is a link that is absolute or leads out of the workspace.]',
    )
    expect(files?.map(({ path, unreadable }) => [path, unreadable])).toEqual([
      ['AGENTS.md', 'link_outside'],
      ['a/AGENTS.md', 'link_outside'],
      ['a/b/c/AGENTS.md', 'link_outside'],
    ])
    expect((await read({ folder: 'b' })).files?.map(({ path }) => path)).toEqual(['AGENTS.md'])
  })

  test.each(['deny', 'ask'] as const)('to a file that a rule %ss are not read', async (effect) => {
    await write('secrets/key', 'Secret.')
    await shell('ln -s secrets/key AGENTS.md')
    rules = [{ id: 'r', effect, match: { file: 'secrets/**' }, origin: 'user', createdAt: 0 }]
    const { text, files } = await read()
    expect(text).not.toContain('Secret')
    expect(files).toEqual([{ path: 'AGENTS.md', unreadable: 'denied' }])
  })
})

describe('32 KiB in all', () => {
  /** A size in bytes, and a character of 1 to 4 of them. */
  const text = fc.tuple(fc.nat({ max: 45_000 }), fc.constantFrom('a', 'é', '€', '😀'))
  const partOf = (section: string) => /\n\n(?<part>[aé€😀]*)/u.exec(section)?.groups?.['part'] ?? ''

  test('the nearest is whole, the root is cut first, and no character is broken', async () => {
    await fc.assert(
      fc.asyncProperty(fc.tuple(text, text, text), async (sizes) => {
        const texts = sizes.map(([size, character]) =>
          character.repeat(Math.floor(size / Buffer.byteLength(character))),
        )
        const paths = ['AGENTS.md', 'a/AGENTS.md', 'a/b/AGENTS.md']
        for (const [index, path] of paths.entries()) await write(path, texts[index] ?? '')
        const { text: all, files = [] } = await read({ folder: 'a/b' })
        expect(all).not.toContain('\uFFFD')
        const parts = paths.map((path) => {
          const section = sections(all).find((one) => one.startsWith(`${path} `))
          return section === undefined ? '' : partOf(section)
        })
        let room = MOST
        for (const [index, whole] of [...texts.entries()].toReversed()) {
          const part = parts[index] ?? ''
          const length = Buffer.byteLength(part)
          expect(whole.startsWith(part)).toBe(true)
          // A cut one leaves less than a character, and nothing to those above it.
          if (Buffer.byteLength(whole) <= room) expect(part).toBe(whole)
          else expect(length).toBeGreaterThan(room - 4)
          expect(length).toBeLessThanOrEqual(room)
          room = part === whole ? room - length : 0
          const bytes = Buffer.byteLength(whole)
          const given = part === whole ? {} : { given: length }
          expect(files[index]).toEqual({ path: paths[index], bytes, ...given })
        }
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  test('the model is told what is missing', async () => {
    await write('AGENTS.md', 'a'.repeat(10))
    await write('a/AGENTS.md', 'é'.repeat(MOST))
    const { text: all } = await read({ folder: 'a' })
    expect(sections(all)).toEqual([
      'AGENTS.md in the workspace:\n\n[Cut: 0 of 10 bytes. Read AGENTS.md for the rest.]',
      expect.stringMatching(/é\n\[Cut: 32768 of 65536 bytes\. Read a\/AGENTS\.md for the rest\.\]$/),
    ])
  })
})

describe('without a reading', () => {
  const old: InstructionFile = { path: 'AGENTS.md', bytes: 4, readAt: AT }

  test('a paused sandbox is woken', async () => {
    await write('AGENTS.md', 'One.')
    await local.sandboxes.maintain()
    await expect
      .poll(async () => (await local.sandboxes.status(USER)).state, { timeout: 20_000 })
      .toBe('paused')
    expect((await read()).files).toEqual([{ path: 'AGENTS.md', bytes: 4 }])
    expect((await local.sandboxes.status(USER)).state).toBe('running')
  }, 30_000)

  test('a stopped one is not started: the last text with its time, the same at every prompt', async () => {
    await write('AGENTS.md', 'One.')
    await read()
    await local.sandboxes.stop(USER)
    now += 60_000
    const first = await read()
    expect(first).toEqual({ text: `From AGENTS.md in the workspace (${AS_READ}):\n\nOne.`, files: [old] })
    now += 60_000
    expect(await read()).toEqual(first)
    expect((await local.sandboxes.status(USER)).state).toBe('stopped')
    expect((await read({ folder: 'never/read' })).files).toEqual([old])
  })

  test('one that does not answer in time has the last text too', async () => {
    await write('AGENTS.md', 'One.')
    await read()
    expect((await read({ awake: () => new Promise(() => undefined) })).files).toEqual([old])
  })

  test('what cannot be read keeps its last text and says so; what is removed has none', async () => {
    await write('AGENTS.md', 'One.')
    await read()
    now += 60_000
    await write('AGENTS.md', new Uint8Array([0xff, 0]))
    const unreadable = await read()
    expect(unreadable.text).toBe(
      `From AGENTS.md in the workspace (${AS_READ}; it cannot be read now: it is not UTF-8 text):\n\nOne.`,
    )
    expect(unreadable.files).toEqual([{ ...old, unreadable: 'not_text' }])
    await sandbox.files.remove('AGENTS.md')
    expect((await read()).files).toEqual([])
    await local.sandboxes.stop(USER)
    expect((await read()).files).toEqual([])
  })

  test('prompts at once in two projects each store their text', async () => {
    await write('a/AGENTS.md', 'A.')
    await write('b/AGENTS.md', 'B.')
    await Promise.all([read({ folder: 'a' }), read({ folder: 'b' })])
    await local.sandboxes.stop(USER)
    const paths = async (folder: string) => (await read({ folder })).files?.map(({ path }) => path)
    expect([await paths('a'), await paths('b')]).toEqual([['a/AGENTS.md'], ['b/AGENTS.md']])
  })

  test('stored texts that cannot be read or written are logged; what is read counts', async () => {
    await write('AGENTS.md', 'One.')
    expect((await read({ rows: closed.people.instructions })).text).toMatch(/One\.$/)
    const warning = { userId: USER, error: expect.any(String) }
    expect(warned).toEqual([warning, warning])
  })

  test('an unchanged text is stored once an hour', async () => {
    const stored = () => store.people.instructions.files(USER)
    await write('AGENTS.md', 'One.')
    await read()
    const first = await stored()
    now += 3_599_999
    await read()
    expect(await stored()).toBe(first)
    now += 1
    await read()
    expect(JSON.parse(await stored())).toEqual([{ path: 'AGENTS.md', text: 'One.', bytes: 4, readAt: now }])
  })

  test('32 texts of a person are stored, the longest unread ones not', async () => {
    for (let index = 0; index < 33; index++) await write(`f${index}/AGENTS.md`, `${index}`)
    for (let index = 0; index < 33; index++) await read({ folder: `f${index}` })
    await local.sandboxes.stop(USER)
    const left = async (index: number) => (await read({ folder: `f${index}` })).files?.length
    expect([await left(0), await left(1), await left(32)]).toEqual([0, 1, 1])
  })
})

test('a chat stores its instructions when their content changes, not when only the sandbox woke up', async () => {
  await using bench = await AgentBench.start(['1', '2', '3', '4', '5'].map((words) => textAnswer(words)))
  const session = await newSession(await bench.core({ parts: { instructions: () => read() } }))
  await write('AGENTS.md', 'One.')
  await read()
  await local.sandboxes.stop(USER)
  await ask(session, 'asleep')
  sandbox = await local.sandboxes.acquire(USER)
  now += 7_200_000
  await ask(session, 'awake')
  await local.sandboxes.stop(USER)
  await ask(session, 'asleep again, as of a later reading')
  sandbox = await local.sandboxes.acquire(USER)
  await write('AGENTS.md', 'Two.')
  await ask(session, 'changed')
  await local.sandboxes.stop(USER)
  await ask(session, 'asleep, as of the last reading')
  expect(happened(session.log, 'instructions')).toEqual([
    {
      type: 'instructions',
      text: `From AGENTS.md in the workspace (${AS_READ}):\n\nOne.`,
      files: [{ path: 'AGENTS.md', bytes: 4, readAt: AT }],
    },
    {
      type: 'instructions',
      text: 'From AGENTS.md in the workspace:\n\nTwo.',
      files: [{ path: 'AGENTS.md', bytes: 4 }],
    },
    {
      type: 'instructions',
      text: 'From AGENTS.md in the workspace (as read at 2026-11-29T11:00:00.000Z):\n\nTwo.',
      files: [{ path: 'AGENTS.md', bytes: 4, readAt: now }],
    },
  ])
})
