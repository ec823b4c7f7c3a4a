import { expect, test } from 'vitest'
import { fileTypeOf } from '../src/workspace/file-type.ts'

const bytes = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0))

test.each([
  ['a picture', '\x89PNG\r\n\x1A\n', 'image/png'],
  ['a drawing', '<?xml version="1.0"?>\n<!-- made by hand -->\n<svg xmlns="x">', 'image/svg+xml'],
  ['a page that has a drawing', '<html><svg></svg>', 'text/plain; charset=utf-8'],
  ['a PDF', '%PDF-1.7\n', 'application/pdf'],
  ['a film', '\0\0\0\x20ftypisom\0\0\x02\0', 'video/mp4'],
  ['a film of the web', '\x1A\x45\xDF\xA3\x9F\x42\x86\x81\x01\x42\x82\x84webm', 'video/webm'],
  ['a song', 'ID3\x04\0', 'audio/mpeg'],
  ['a recording', 'RIFF\x24\0\0\0WAVEfmt ', 'audio/wav'],
  ['a photograph that browsers do not show', '\0\0\0\x18ftypheic', 'image/heic'],
  ['text that begins like a bitmap', 'BMW, Audi, Opel', 'text/plain; charset=utf-8'],
  ['nothing', '', 'text/plain; charset=utf-8'],
  ['a program', '\x7FELF\x02\x01\x01\0', 'application/octet-stream'],
])('%s is told by its bytes', (_, beginning, type) => {
  expect(fileTypeOf(bytes(beginning))).toBe(type)
})
