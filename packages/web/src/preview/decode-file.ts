/** The text of a file's bytes, for the page and its workers. */
import { decodeText, encodingNote } from '@sandlot/shared/workspace/text-encoding'

export interface DecodedFile {
  text: string
  /** A sentence about its encoding. */
  note: string | undefined
}

/** `cut`: a character that the end cuts is left off. Without a byte order mark. */
export function decodeFile(bytes: Uint8Array, cut: boolean): DecodedFile {
  const read = decodeText(bytes, cut)
  return read === undefined
    ? { text: new TextDecoder().decode(bytes), note: 'This file has bytes that are no text.' }
    : { text: read.text.replace(/^\uFEFF/, ''), note: encodingNote(read) }
}
