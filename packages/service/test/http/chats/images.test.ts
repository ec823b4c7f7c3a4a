import { MAX_IMAGE_BYTES, uploadedImage } from '@sandlot/shared/chat/images'
import { expect, test } from 'vitest'
import { Tab, addUser } from '../../support/harness.ts'
import { PNG } from '../../support/png.ts'
import { useHarness } from '../../support/use-harness.ts'

const here = useHarness()

const send = (body: Buffer, headers: Record<string, string> = {}): Promise<Response> => {
  const { harness, ann } = here()
  return fetch(`${harness.service.url}/api/images`, {
    method: 'POST',
    body: new Uint8Array(body),
    headers: {
      cookie: ann.cookie,
      origin: harness.service.url,
      'content-type': 'image/png',
      ...headers,
    },
  })
}

test('an image is sent, goes with its message to the agent, and comes back as an address with its bytes', async () => {
  const { harness, ann } = here()
  const { id } = uploadedImage.parse(await (await send(PNG)).json())
  const tab = await Tab.of(ann, harness.service.url)
  tab.send({ type: 'ai_chat', requestId: 'r1', text: 'what is this?', images: [id] })
  const { sessionId } = await tab.get('ai_chat_done')
  const shown = tab.eventsOf(sessionId).filter((event) => event.sessionUpdate === 'user_message_chunk')
  expect(shown).toMatchObject([
    { content: { type: 'text', text: 'what is this?' } },
    { content: { type: 'image', mimeType: 'image/png', data: '' } },
  ])
  const stored = await harness.agent.store.log.read(sessionId)
  expect(JSON.stringify(stored)).toContain(PNG.toString('base64'))
  expect(tab.texts.join('\n')).not.toContain(PNG.toString('base64'))

  const [, { content } = { content: undefined }] = shown
  const uri = content?.type === 'image' ? (content.uri ?? '') : ''
  const got = await ann.get(uri)
  expect(Buffer.from(await got.arrayBuffer())).toEqual(PNG)
  expect(Object.fromEntries(got.headers)).toMatchObject({
    'content-type': 'image/png',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'cache-control': 'private, no-cache',
  })
  // Each time it is asked who asks; the bytes travel once.
  const etag = got.headers.get('etag') ?? ''
  const again = await ann.get(uri, { 'if-none-match': etag })
  expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
  expect(again.headers.get('cache-control')).toBe('private, no-cache')
  expect((await ann.get(uri, { 'if-none-match': '"another"' })).status).toBe(200)
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect((await bob.get(uri)).status).toBe(404)
  expect((await fetch(harness.service.url + uri)).status).toBe(401)
  for (const other of ['9999/0', '1/0', '3/1', '3/x', '-1/0', '1e3/0'])
    expect((await ann.get(`/api/sessions/${sessionId}/images/${other}`)).status, other).toBe(404)
  await tab.close()
})

test('a message may be images alone; one that names an image that is not there is refused', async () => {
  const { harness, ann } = here()
  const { id } = uploadedImage.parse(await (await send(PNG)).json())
  const bob = await addUser(harness, ann, 'bob@example.org')
  const tab = await Tab.of(ann, harness.service.url)
  tab.send({ type: 'ai_chat', requestId: 'r1', text: '', images: [id] })
  await tab.get('ai_chat_done')
  tab.send({ type: 'ai_chat', requestId: 'r2', text: '' })
  expect(
    await tab.get('ai_chat_error', ({ requestId }) => requestId === undefined || requestId === 'r2'),
  ).toMatchObject({ code: 'invalid_frame' })
  tab.send({ type: 'ai_chat', requestId: 'r3', text: 'x', images: [`i_${'0'.repeat(20)}`] })
  expect(await tab.get('ai_chat_error', ({ requestId }) => requestId === 'r3')).toMatchObject({
    code: 'not_found',
    message: expect.stringContaining('Attach it again'),
  })
  // Another person's image does not exist for Bob.
  expect((await bob.get(`/api/images/${id}`)).status).toBe(404)
  const others = await Tab.of(bob, harness.service.url)
  others.send({ type: 'ai_chat', requestId: 'r4', text: 'x', images: [id] })
  expect(await others.get('ai_chat_error')).toMatchObject({ code: 'not_found', requestId: 'r4' })
  await Promise.all([tab.close(), others.close()])
})

test('what is no image, too large, of no stated type, or from another page is refused by name', async () => {
  const refusal = async (response: Promise<Response>) => {
    const { code } = (await (await response).json()) as { code: string }
    return `${(await response).status} ${code}`
  }
  expect(await refusal(send(Buffer.from('<svg onload="alert(1)"/>')))).toBe('400 bad_request')
  expect(await refusal(send(PNG, { 'content-type': 'text/plain' }))).toBe('400 bad_request')
  expect(await refusal(send(PNG, { 'content-type': 'image/svg+xml' }))).toBe('400 bad_request')
  const large = Buffer.concat([PNG, Buffer.alloc(MAX_IMAGE_BYTES)])
  expect(await refusal(send(large))).toBe('413 too_large')
  expect(await refusal(send(PNG, { origin: 'https://evil.example' }))).toBe('403 bad_origin')
  expect(await refusal(send(PNG, { cookie: '' }))).toBe('401 unauthenticated')
  expect((await send(Buffer.concat([PNG, Buffer.alloc(MAX_IMAGE_BYTES - PNG.length)]))).status).toBe(201)
})

test('one that waits is shown as it is now, until its sender removes it', async () => {
  const { harness, ann } = here()
  const { id } = uploadedImage.parse(await (await send(PNG)).json())
  const bob = await addUser(harness, ann, 'bob@example.org')
  const path = `/api/images/${id}`
  const shown = await ann.get(path)
  expect([shown.status, shown.headers.get('cache-control')]).toEqual([200, 'no-store'])
  const from = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(harness.service.url + path, { method: 'DELETE', headers })).status
  expect(await from({ origin: harness.service.url })).toBe(401)
  expect(await from({ cookie: ann.cookie, origin: 'https://evil.example' })).toBe(403)
  expect((await bob.delete(path)).status).toBe(404)
  expect((await ann.get(path)).status).toBe(200)
  expect((await ann.delete(path)).status).toBe(204)
  expect((await ann.get(path)).status).toBe(404)
  expect((await ann.delete(path)).status).toBe(404)
  expect((await ann.delete('/api/images/..%2Fx')).status).toBe(404)
})

test('images that are too large together are refused before they reach the agent', async () => {
  const { harness, ann } = here()
  const large = Buffer.concat([PNG, Buffer.alloc(MAX_IMAGE_BYTES - PNG.length)])
  const sent = await Promise.all([large, large, large, PNG].map((image) => send(image)))
  const images = await Promise.all(
    sent.map(async (response) => uploadedImage.parse(await response.json()).id),
  )
  const tab = await Tab.of(ann, harness.service.url)
  tab.send({ type: 'ai_chat', requestId: 'r1', text: 'compare', images })
  expect(await tab.get('ai_chat_error')).toMatchObject({
    code: 'too_large',
    requestId: 'r1',
    message: expect.stringContaining('15 MiB'),
  })
  expect(harness.agent.received).toEqual([])
  tab.send({ type: 'ai_chat', requestId: 'r2', text: 'this one', images: images.slice(3) })
  await tab.get('ai_chat_done')
  await tab.close()
})
