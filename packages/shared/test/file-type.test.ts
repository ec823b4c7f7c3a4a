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
  ['a PDF behind a mark', '\xEF\xBB\xBF%PDF-1.4\n1 0 obj\n', 'application/pdf'],
  ['a PDF behind a line break', '\r\n%PDF-1.7\n%\xE2\xE3\xCF\xD3', 'application/pdf'],
  ['an archive that has a PDF', `a.pdf${'\0'.repeat(507)}%PDF-1.7`, 'application/octet-stream'],
  ['a text about PDF', '%PDF-1.7 is the first line', 'text/plain; charset=utf-8'],
  ['a text about sounds', 'ID3 tags explained\n', 'text/plain; charset=utf-8'],
  ['a text about streams', 'OggS, fLaC', 'text/plain; charset=utf-8'],
  ['a text about films', 'The ftyp box', 'text/plain; charset=utf-8'],
  ['a text about pictures', 'GIF89a is a format', 'text/plain; charset=utf-8'],
  ['text of Windows', 'gr\xF6\xDFe', 'text/plain; charset=windows-1252'],
  ['text in UTF-16', '\xFF\xFEg\0\xF6\0', 'text/plain; charset=utf-16le'],
  ['a drawing in UTF-16', `\xFF\xFE<\0s\0v\0g\0>\0`, 'image/svg+xml'],
  ['a text with a broken character', 'gr\xC3\xB6\xC3\x9Fe \xC3', 'text/plain; charset=utf-8'],
  ['a program', '\x7FELF\x02\x01\x01\0', 'application/octet-stream'],
])('%s is told by its bytes', (_, beginning, type) => {
  expect(fileTypeOf(bytes(beginning))).toBe(type)
})
