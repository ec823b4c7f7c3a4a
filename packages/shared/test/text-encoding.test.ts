import { expect, test } from 'vitest'
import { decodeText, encodeText, encodingOf } from '../src/workspace/text-encoding.ts'

const utf16 = (text: string) => new Uint8Array(Buffer.from(text, 'utf16le'))
const latin = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))

test.each([
  ['nothing', latin(''), { encoding: 'utf-8' }],
  ['UTF-8', new TextEncoder().encode('größe 尺寸 😀'), { encoding: 'utf-8' }],
  ['UTF-8 with a mark', new TextEncoder().encode('\uFEFFa'), { encoding: 'utf-8' }],
  ['UTF-16 with a mark', utf16('\uFEFFgröße'), { encoding: 'utf-16le' }],
  [
    'UTF-16 of the other order',
    new Uint8Array(Buffer.from('\uFEFFgröße', 'utf16le').swap16()),
    { encoding: 'utf-16be' },
  ],
  ['UTF-16 without a mark', utf16('name;value\r\n'), { encoding: 'utf-16le', doubt: 'guessed' }],
  [
    'Windows-1252',
    latin('“Größe” 5 €'.replaceAll('“', '\x93').replaceAll('”', '\x94').replace('€', '\x80')),
    { encoding: 'windows-1252', doubt: 'guessed' },
  ],
  ['UTF-8 with one wrong byte', latin('gr\xC3\xB6\xC3\x9Fe \xFF'), { encoding: 'utf-8', doubt: 'damaged' }],
  [
    'bytes without NUL that are no Windows-1252',
    latin('\x81\x01\xFF'),
    { encoding: 'utf-8', doubt: 'damaged' },
  ],
  ['UTF-16 with half a pair', utf16('\uFEFFa\uD800b'), { encoding: 'utf-16le', doubt: 'damaged' }],
  ['UTF-16 with half a character', latin('\xFE\xFF\0a\0'), { encoding: 'utf-16be', doubt: 'damaged' }],
  ['bytes after a mark of UTF-16', latin('\xFF\xFE\x01\0\x02\0'), undefined],
  ['UTF-8 with a late NUL', latin(`${'a'.repeat(9000)}\0b`), { encoding: 'utf-8' }],
  ['bytes', latin('a\0\0\x01'), undefined],
  ['UTF-32', latin('\xFF\xFE\0\0a\0\0\0'), undefined],
])('%s', (_, bytes, found) => {
  expect(encodingOf(bytes)).toEqual(found)
  const read = decodeText(bytes)
  if (read !== undefined && read.doubt !== 'damaged')
    expect(encodeText(read.text, read.encoding)).toEqual(bytes)
})

test('a character that the end cuts is left off, and is no damage', () => {
  const bytes = new TextEncoder().encode('größe')
  expect(decodeText(bytes.subarray(0, 3), true)).toEqual({ encoding: 'utf-8', text: 'gr' })
  expect(decodeText(bytes.subarray(0, 3))).toMatchObject({ doubt: 'guessed' })
})

test('what an encoding does not have is not encoded', () => {
  expect(encodeText('5 €', 'windows-1252')).toEqual(Uint8Array.of(0x35, 0x20, 0x80))
  expect(encodeText('尺', 'windows-1252')).toBeUndefined()
})
