/** Unsent text and attachments: their owner, and their target. */
import { MAX_IMAGES, type UploadedImage } from '@sandlot/shared/chat/images'
import { expect, test, vi } from 'vitest'
import { draftOf, moveDraft } from '../../src/chat/composer/drafts.ts'
import { memoryStorage, unsentStorage } from '../../src/lib/storage.ts'
import { Attachments, blockedBy } from '../../src/state/attachments.ts'

const PNG = Buffer.from('89504e470d0a1a0a0000000d', 'hex')
const picture = (name: string) => new File([PNG], name)

/** A file whose bytes come when the test lets them: of a slow disk, or never, as of a folder. */
function fileOf(name: string, bytes: () => Promise<ArrayBuffer>): File {
  const file = picture(name)
  const beginning = new Blob()
  beginning.arrayBuffer = bytes
  file.slice = () => beginning
  return file
}

interface Sent {
  name: string
  signal: AbortSignal
  arrive: (id: string) => Promise<void>
  fail: (problem: string) => Promise<void>
}

/** A chat that takes everything. */
const ALL = { images: null, files: null }
const ONLY_IMAGES = { images: null, files: 'Only images can be attached here.' }

const idOf = (name: string) => `i_${name.padEnd(20, '0')}`
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** The composers of one tab, whose uploads end when the test says so. */
function tab(local = memoryStorage(), person = 'u_ada', own = memoryStorage()) {
  const sent: Sent[] = []
  const discarded: string[] = []
  const unsent = unsentStorage(local, own, person)
  const attachments = new Attachments({
    storageOf: unsent,
    upload(file, _type, { signal }) {
      const { promise, resolve, reject } = Promise.withResolvers<UploadedImage>()
      signal.addEventListener('abort', () => reject(new DOMException('stopped', 'AbortError')))
      sent.push({
        name: (file as File).name,
        signal,
        arrive: async (id) => {
          resolve({ id: idOf(id), mimeType: 'image/png', bytes: PNG.length })
          await settled()
        },
        fail: async (problem) => {
          reject(new Error(problem))
          await settled()
        },
      })
      return promise
    },
    discard: async (id) => void discarded.push(id),
    uploadFile(file, { signal }) {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      signal.addEventListener('abort', () => reject(new DOMException('stopped', 'AbortError')))
      sent.push({
        name: file.name,
        signal,
        arrive: async (path) => {
          resolve(path)
          await settled()
        },
        fail: async (problem) => {
          reject(new Error(problem))
          await settled()
        },
      })
      return promise
    },
    removeFile: async (path) => void discarded.push(path),
  })
  const names = (sessionId: string | null) =>
    attachments.of(sessionId).items.map(({ name, state }) => `${name} ${state}`)
  const upload = (name: string): Sent => {
    const found = sent.find((one) => one.name === name)
    if (found === undefined) throw new Error(`${name} was not sent`)
    return found
  }
  return { attachments, unsent, sent, discarded, names, upload, local, own }
}

test('what is on its way when a new chat gets its session arrives in that session, and not in the next new chat', async () => {
  const { attachments, names, sent, upload, local, own, unsent } = tab()
  // The second file is looked at when the session has begun.
  const begun = Promise.withResolvers<void>()
  const two = fileOf('two.png', async () => {
    await begun.promise
    return picture('two.png').arrayBuffer()
  })
  const added = attachments.add(null, [picture('one.png'), two], ALL)
  await vi.waitFor(() => expect(sent).toHaveLength(1))
  attachments.started('s_1')
  begun.resolve()
  await added
  await attachments.add(null, [picture('next.png')], ALL)
  expect(names('s_1')).toEqual(['one.png sending', 'two.png sending'])
  for (const name of ['one', 'two', 'next']) await upload(`${name}.png`).arrive(name)
  expect(names('s_1')).toEqual(['one.png there', 'two.png there'])
  expect(names(null)).toEqual(['next.png there'])
  // And after a reload of the tab.
  const again = tab(local, 'u_ada', own)
  expect([again.names('s_1'), again.names(null)]).toEqual([names('s_1'), names(null)])
  expect(unsent('s_1').get('sandlot.images.s_1')).toContain('two.png')
})

test('another tab has another new chat, another person has nothing of it, and a session is the same in all tabs', async () => {
  const [a, other] = [tab(), memoryStorage()]
  await a.attachments.add(null, [picture('mine.png')], ALL)
  await a.attachments.add('s_1', [picture('shared.png')], ALL)
  await a.upload('mine.png').arrive('mine')
  await a.upload('shared.png').arrive('shared')
  a.unsent(null).set('sandlot.draft.new', 'mine')
  a.unsent('s_1').set('sandlot.draft.s_1', 'shared')

  const b = tab(a.local, 'u_ada', other)
  expect([b.names(null), b.names('s_1')]).toEqual([[], ['shared.png there']])
  expect([draftOf(b.unsent, null), draftOf(b.unsent, 's_1')]).toEqual(['', 'shared'])
  b.attachments.started('s_2')
  moveDraft(b.unsent, 's_2')
  expect([b.names('s_2'), draftOf(b.unsent, 's_2'), draftOf(a.unsent, null)]).toEqual([[], '', 'mine'])
  moveDraft(a.unsent, 's_3')
  expect([draftOf(a.unsent, 's_3'), draftOf(a.unsent, null)]).toEqual(['mine', ''])

  const next = tab(a.local, 'u_grace', a.own)
  expect([next.names(null), next.names('s_1')]).toEqual([[], []])
  expect([draftOf(next.unsent, 's_3'), draftOf(next.unsent, 's_1')]).toEqual(['', ''])
})

test('what is removed is discarded or not sent on; what is sent with a message stays', async () => {
  const { attachments, names, upload, discarded } = tab()
  await attachments.add('s_1', [picture('one.png'), picture('two.png'), picture('three.png')], ALL)
  await upload('one.png').arrive('one')
  await upload('two.png').arrive('two')
  const keyOf = (name: string) => attachments.of('s_1').items.find((item) => item.name === name)?.key ?? ''
  attachments.remove('s_1', keyOf('one.png'))
  expect(discarded).toEqual([idOf('one')])
  const { signal } = upload('three.png')
  attachments.remove('s_1', keyOf('three.png'))
  expect(signal.aborted).toBe(true)
  await settled()
  expect(names('s_1')).toEqual(['two.png there'])
  attachments.clear('s_1')
  expect([names('s_1'), discarded]).toEqual([[], [idOf('one')]])
})

test('a folder, a text and one too many are said, and stop nothing that comes with them', async () => {
  const complaint = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const { attachments, names } = tab()
  const folder = fileOf('photos', () => Promise.reject(new DOMException('no file', 'NotFoundError')))
  await attachments.add(null, [folder, picture('one.png')], ALL)
  expect(attachments.of(null).problem).toBe('Can’t read “photos”. Attach files, not folders.')
  await attachments.add(null, [new File(['words'], 'notes.txt'), picture('two.png')], ONLY_IMAGES)
  expect(attachments.of(null).problem).toBe('Only images can be attached here.')
  expect(names(null)).toEqual(['one.png sending', 'two.png sending'])
  await attachments.add(
    null,
    Array.from({ length: MAX_IMAGES }, () => picture('more.png')),
    ALL,
  )
  expect(attachments.of(null)).toMatchObject({ problem: 'A message can have up to 10 images.' })
  expect(names(null)).toHaveLength(MAX_IMAGES)
  expect(complaint).toHaveBeenCalledTimes(1)
  complaint.mockRestore()
})

test('a message waits for its images, and for a model that sees them', async () => {
  const { attachments, sent, upload } = tab()
  const blocked = (refusal: string | null = null) => blockedBy(attachments.of('s_1').items, refusal)
  expect([blocked(), blocked('blind')]).toEqual([null, null])
  await attachments.add('s_1', [picture('one.png')], ALL)
  expect(blocked()).toMatch(/Wait for the images/)
  await upload('one.png').fail('The disk is full.')
  expect(blocked()).toMatch(/remove those that failed/)
  const [item] = attachments.of('s_1').items
  if (item?.state !== 'failed') throw new Error('did not fail')
  expect(item.problem).toBe('The disk is full.')
  item.again?.()
  await sent[1]?.arrive('one')
  expect([blocked(), blocked('It is blind.')]).toEqual([null, 'It is blind.'])
  await attachments.add('s_1', [picture('two.png')], { images: 'It is blind.', files: null })
  expect(attachments.of('s_1')).toMatchObject({ problem: 'It is blind.', items: [{ name: 'one.png' }] })
})

test('after the sign-out nothing is sent on', async () => {
  const { attachments, sent, upload } = tab()
  await attachments.add('s_1', [picture('one.png')], ALL)
  const { signal } = upload('one.png')
  const added = attachments.add('s_1', [picture('two.png')], ALL)
  attachments.stop()
  await added
  expect([signal.aborted, sent.length]).toEqual([true, 1])
})

test('files of any kind go into the workspace, beside images, and a reload knows them', async () => {
  const { attachments, names, upload, discarded, local, own } = tab()
  const notes = new File(['words'], 'notes.txt')
  const keys = await attachments.add('s_1', [notes, picture('one.png'), new File(['x'], 'x.pdf')], ALL)
  expect(keys).toHaveLength(3)
  expect(blockedBy(attachments.of('s_1').items, null)).toMatch(/Wait for the files/)
  await upload('notes.txt').arrive('uploads/notes (2).txt')
  await upload('one.png').arrive('one')
  await upload('x.pdf').fail('The disk is full.')
  expect(names('s_1')).toEqual(['notes.txt there', 'one.png there', 'x.pdf failed'])
  attachments.remove('s_1', keys[2] ?? '')
  expect(attachments.of('s_1').items[0]).toMatchObject({ path: 'uploads/notes (2).txt', preview: null })
  // A model that sees no images is none that takes no files.
  expect(blockedBy(attachments.of('s_1').items.slice(0, 1), 'It is blind.')).toBeNull()
  expect(tab(local, 'u_ada', own).names('s_1')).toEqual(['notes.txt there', 'one.png there'])
  attachments.remove('s_1', keys[0] ?? '')
  expect(discarded).toEqual(['uploads/notes (2).txt'])
})
