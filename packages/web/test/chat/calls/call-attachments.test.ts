import { expect, test } from 'vitest'
import { attachmentsOf } from '../../../src/chat/calls/call-attachments.ts'

const link = (uri: string) =>
  ({ type: 'content', content: { type: 'resource_link', uri, name: 'Connect calendar' } }) as const
const image = (mimeType: string) =>
  ({ type: 'content', content: { type: 'image', data: 'aGk=', mimeType } }) as const

test('links lead to web addresses only, and say where; images are of kinds that cannot do anything', () => {
  expect(
    attachmentsOf([
      link('https://login.example.org:8443/authorize?a=b'),
      link('javascript:alert(1)'),
      link('file:///etc/passwd'),
      link('not an address'),
      image('image/png'),
      image('image/svg+xml'),
      { type: 'content', content: { type: 'text', text: 'x' } },
      { type: 'diff', path: 'a', oldText: '', newText: '' },
    ]),
  ).toEqual({
    links: [
      {
        url: 'https://login.example.org:8443/authorize?a=b',
        name: 'Connect calendar',
        host: 'login.example.org:8443',
      },
    ],
    images: [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }],
  })
})
