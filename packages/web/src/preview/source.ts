/** A file of the workspace as the preview reads it: its head, and more where a view needs it. */
import { problemOf } from '../net/http.ts'
import { fileUrl } from '../net/files.ts'
import { type DecodedFile, decodeFile } from './decode-file.ts'
import { type Kind, kindOf } from './kinds.ts'

/** Bytes that are read of any file before it is known what it is. */
const HEAD_BYTES = 64 * 1024

export interface FileHead {
  path: string
  kind: Kind
  /** Media type, by the bytes. */
  type: string
  /** Bytes. */
  size: number
  /** Changes with the file. */
  version: string
  head: Uint8Array<ArrayBuffer>
}

/** Null: there is no such file. Throws `ApiError`. */
export async function openFile(path: string, signal: AbortSignal): Promise<FileHead | null> {
  const response = await fetch(fileUrl(path), { headers: { range: `bytes=0-${HEAD_BYTES - 1}` }, signal })
  if (response.status === 404) return null
  const version = response.headers.get('etag') ?? ''
  // An empty file has no first byte.
  if (response.status === 416)
    return {
      path,
      kind: kindOf('text/plain', path),
      type: 'text/plain',
      size: 0,
      version,
      head: new Uint8Array(),
    }
  if (!response.ok) throw await problemOf(response)
  const type = response.headers.get('content-type') ?? 'application/octet-stream'
  const head = new Uint8Array(await response.arrayBuffer())
  const size = Number(/\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1] ?? head.length)
  return { path, kind: kindOf(type, path), type, size, version, head }
}

export interface FileText extends DecodedFile {
  /** The file has more. */
  more: boolean
}

/** The text of a file up to `most` bytes. Throws `ApiError`. */
export async function readText(
  { path, size, head }: FileHead,
  most: number,
  signal: AbortSignal,
): Promise<FileText> {
  const bytes = size <= head.length ? head : await readBytes(path, Math.min(size, most), signal)
  const more = size > bytes.length
  return { ...decodeFile(bytes, more), more }
}

async function readBytes(path: string, to: number, signal: AbortSignal): Promise<Uint8Array> {
  const response = await fetch(fileUrl(path), { headers: { range: `bytes=0-${to - 1}` }, signal })
  if (!response.ok) throw await problemOf(response)
  return new Uint8Array(await response.arrayBuffer())
}
