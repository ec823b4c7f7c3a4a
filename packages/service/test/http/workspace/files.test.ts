import { request } from 'node:http'
import { MAX_SHOWN_PAGE_BYTES } from '@sandlot/shared/workspace/files'
import { expect, test } from 'vitest'
import { addUser, waitFor } from '../../support/harness.ts'
import { PNG } from '../../support/png.ts'
import { useHarness } from '../../support/use-harness.ts'

const here = useHarness()
const at = (path: string, more = '') => `/api/files/content?path=${encodeURIComponent(path)}${more}`

function put(path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
  const { harness, ann } = here()
  return fetch(harness.service.url + path, {
    method: 'PUT',
    body,
    headers: { cookie: ann.cookie, origin: harness.service.url, ...headers },
  })
}

test('a file is put, listed, and comes back byte for byte, to its owner alone', async () => {
  const { harness, ann } = here()
  // More than one piece of the agent’s.
  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * i) % 251)
  expect((await put(at('data/numbers.bin'), bytes)).status).toBe(204)
  expect(await (await ann.get('/api/files?path=data')).json()).toMatchObject({
    entries: [{ name: 'numbers.bin', kind: 'file', size: bytes.length }],
  })
  const got = await ann.get(at('data/numbers.bin', '&download=1'))
  expect(new Uint8Array(await got.arrayBuffer())).toEqual(bytes)
  expect(Object.fromEntries(got.headers)).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-length': '300000',
    'content-disposition': `attachment; filename="numbers.bin"; filename*=UTF-8''numbers.bin`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  })
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect((await bob.get(at('data/numbers.bin'))).status).toBe(404)
  expect((await fetch(harness.service.url + at('data/numbers.bin'))).status).toBe(401)
})

test('what a browser may show is shown, whatever the file is called; the name cannot break out of its header', async () => {
  const { ann } = here()
  await put(at('page.html'), '<script>alert(1)</script>')
  await put(at('a "b"\n’c.txt'), new Uint8Array(PNG))
  const page = await ann.get(at('page.html'))
  expect(page.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(page.headers.get('content-disposition')).toMatch(/^inline; /)
  const image = await ann.get(at('a "b"\n’c.txt'))
  expect(image.headers.get('content-type')).toBe('image/png')
  expect(image.headers.get('content-disposition')).toBe(
    `inline; filename="a _b___c.txt"; filename*=UTF-8''a%20%22b%22%0A%E2%80%99c.txt`,
  )
})

test('a file that is there is replaced only on request', async () => {
  const { ann } = here()
  expect((await put(at('note'), 'one')).status).toBe(204)
  expect((await put(at('note'), 'two')).status).toBe(409)
  expect(await (await ann.get(at('note'))).text()).toBe('one')
  expect((await put(at('note', '&replace=true'), 'two')).status).toBe(204)
  expect(await (await ann.get(at('note'))).text()).toBe('two')
})

test('an empty file is a file; a path is needed; a foreign page uploads nothing', async () => {
  const { ann } = here()
  expect((await put(at('empty'), '')).status).toBe(204)
  expect(await (await ann.get(at('empty'))).text()).toBe('')
  expect((await ann.get('/api/files/content')).status).toBe(400)
  expect((await ann.get(at('missing'))).status).toBe(404)
  expect((await put(at('x'), 'y', { origin: 'https://evil.example' })).status).toBe(403)
})

test('a file that changes while it is read is refused or cut, so that it is not taken for complete', async () => {
  const { harness, ann } = here()
  await put(at('log'), new Uint8Array(300_000))
  harness.agent.files.changing = true
  const got = await ann.get(at('log'))
  // Refused if the second piece is read before the head of the answer is sent.
  const isWhole = await got.arrayBuffer().then(
    () => got.ok,
    () => false,
  )
  expect(isWhole).toBe(false)
})

test('of many concurrent uploads a few wait for each other, and the others are refused; one name is written once', async () => {
  const { harness, ann } = here()
  const held = Promise.withResolvers<void>()
  harness.agent.files.held = held.promise
  const statuses: number[] = []
  const all = Array.from({ length: 20 }, async (_, n) =>
    statuses.push((await put(at('same'), `body ${n}`)).status),
  )
  await waitFor(() => statuses.length === 12)
  expect(new Set(statuses)).toEqual(new Set([429]))
  held.resolve()
  await Promise.all(all)
  expect(statuses.slice(12).toSorted((a, b) => a - b)).toEqual([204, ...Array.from({ length: 7 }, () => 409)])
  expect(await (await ann.get(at('same'))).text()).toMatch(/^body \d+$/)
})

test('a part of a file is sent alone, and a part that is not there is refused', async () => {
  const { ann } = here()
  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * i) % 251)
  await put(at('film.bin'), bytes)
  const ask = (range: string) => ann.get(at('film.bin'), { range })
  for (const [range, from, to] of [
    ['bytes=0-9', 0, 10],
    ['bytes=200000-', 200_000, 300_000],
    ['bytes=100-199999', 100, 200_000],
    ['bytes=-5', 299_995, 300_000],
  ] as const) {
    const part = await ask(range)
    expect(part.status).toBe(206)
    expect(part.headers.get('content-range')).toBe(`bytes ${from}-${to - 1}/300000`)
    expect(new Uint8Array(await part.arrayBuffer())).toEqual(bytes.subarray(from, to))
  }
  expect((await ask('bytes=300000-')).status).toBe(416)
})

test('what is a document to a browser is only saved where its address is opened', async () => {
  const { ann } = here()
  await put(at('logo.svg'), '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
  const image = await ann.get(at('logo.svg'))
  expect(image.headers.get('content-type')).toBe('image/svg+xml')
  // The page judges a drawing before it is drawn.
  const drawn = await ann.get(at('logo.svg'), { 'sec-fetch-dest': 'image' })
  expect(drawn.status).toBe(400)
  expect(image.headers.get('content-disposition')).toMatch(/^attachment; /)
  expect(image.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
})

test('a page of the workspace is for a frame of an origin of its own, and no larger than can be shown', async () => {
  const { ann } = here()
  await put(at('page.html'), '<h1>Hi</h1><script>fetch("/api/me")</script>')
  const page = '/api/files/preview?path=page.html'
  const shown = await ann.get(page, { 'sec-fetch-dest': 'iframe' })
  expect(await shown.text()).toContain('<h1>Hi</h1>')
  expect(Object.fromEntries(shown.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'SAMEORIGIN',
    'connection-allowlist': '()',
    'content-security-policy': expect.stringMatching(/^sandbox allow-scripts; default-src 'none'; /),
  })
  expect((await ann.get(page, { 'sec-fetch-dest': 'document' })).status).toBe(403)
  await put(at('large.html'), new Uint8Array(MAX_SHOWN_PAGE_BYTES + 1))
  const large = await ann.get('/api/files/preview?path=large.html')
  expect([large.status, await large.json()]).toMatchObject([413, { code: 'too_large' }])
})

test('a large body goes to the agent in pieces; one that breaks off is given up', async () => {
  const { harness, ann } = here()
  const bytes = Uint8Array.from({ length: 3_000_000 }, (_, i) => (i * i) % 251)
  const done = await put(at('large.bin'), bytes)
  expect([done.status, done.headers.get('etag')]).toEqual([204, '"3000000-1"'])
  expect(new Uint8Array(await (await ann.get(at('large.bin'))).arrayBuffer())).toEqual(bytes)
  const url = new URL(harness.service.url + at('cut.bin'))
  const cut = request(url, {
    method: 'PUT',
    headers: { cookie: ann.cookie, origin: harness.service.url, 'content-length': 5_000_000 },
  })
  cut.on('error', () => {})
  cut.write(bytes)
  await waitFor(() => harness.agent.files.pending > 0)
  cut.destroy()
  await waitFor(() => harness.agent.files.aborted.length > 0)
  expect((await ann.get(at('cut.bin'))).status).toBe(404)
})

test('a file comes in several requests', async () => {
  const { harness, ann } = here()
  const first = await put(at('parts', '&upload=u1&more=true'), 'hello ')
  expect(await first.json()).toEqual({ written: 6 })
  expect((await ann.get(at('parts'))).status).toBe(404)
  expect((await put(at('parts', '&upload=u1&offset=6'), 'world')).status).toBe(204)
  expect(await (await ann.get(at('parts'))).text()).toBe('hello world')
  await put(at('other', '&upload=u2&more=true'), 'hello ')
  expect((await ann.delete('/api/files/uploads/u2')).status).toBe(204)
  expect(harness.agent.files.aborted).toContain('u2')
})

test('a text is saved over the version that was read, else what is there now is told', async () => {
  await put(at('text'), 'one')
  expect((await put(at('text'), 'x', { 'if-match': 'anything' })).status).toBe(400)
  const refused = await put(at('text', '&replace=true'), 'two', { 'if-match': '"3-77"' })
  expect([refused.status, await refused.json()]).toEqual([
    409,
    expect.objectContaining({ code: 'conflict', current: { size: 1, modifiedAt: 1 } }),
  ])
  const saved = await put(at('text', '&replace=true'), 'two', { 'if-match': '"3-1"' })
  expect(saved.status).toBe(204)
})
