/** What is in the person's workspace. Paths are relative to it. */
import { type DirectoryList, directoryList } from '@sandlot/shared/person/files'
import { z } from 'zod'
import { call, problemOf, send } from './http.ts'

export function fetchDirectory(path: string): Promise<DirectoryList> {
  return call(directoryList, 'GET', `/api/files?path=${encodeURIComponent(path)}`)
}

/** Where the bytes of a file are. `download` makes the browser save it. */
export function fileUrl(path: string, options: { download?: boolean } = {}): string {
  const url = `/api/files/content?path=${encodeURIComponent(path)}`
  return options.download === true ? `${url}&download=1` : url
}

/** Of a file by its absolute path, as calls name it; null when it is not in the workspace. */
export function workspaceFileUrl(path: string): string | null {
  const [, relative] = /^\/workspace\/(.+)$/.exec(path) ?? []
  return relative === undefined ? null : fileUrl(relative, { download: true })
}

/**
 * Put a file there. Throws `ApiError`: `conflict` where something is, unless it is to be replaced.
 */
export async function putFile(path: string, file: Blob, options: { replace: boolean }): Promise<void> {
  await send(z.unknown(), 'PUT', `${fileUrl(path)}${options.replace ? '&replace=true' : ''}`, {
    type: 'application/octet-stream',
    body: file,
  })
}

/** Of a text that is shown in the page; the rest is read in a tab of its own. */
const SHOWN_BYTES = 200_000

export type SeenFile =
  | { kind: 'gone' }
  | { kind: 'image' }
  | { kind: 'text'; text: string; more: boolean }
  | { kind: 'other' }

/** What a file is, by the type that the service has found in its bytes. Throws `ApiError`. */
export async function lookAtFile(path: string, signal: AbortSignal): Promise<SeenFile> {
  const controller = new AbortController()
  const both = AbortSignal.any([signal, controller.signal])
  const response = await fetch(fileUrl(path), { signal: both })
  if (response.status === 404) return { kind: 'gone' }
  if (!response.ok) throw await problemOf(response)
  const type = response.headers.get('content-type') ?? ''
  const kind = type.startsWith('image/') ? 'image' : type.startsWith('text/plain') ? 'text' : 'other'
  if (kind !== 'text') {
    // Its bytes are of no use here.
    controller.abort()
    return { kind }
  }
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  const reader = response.body?.getReader()
  for (let piece = await reader?.read(); piece?.value !== undefined; piece = await reader?.read()) {
    text += decoder.decode(piece.value, { stream: true })
    bytes += piece.value.length
    if (bytes <= SHOWN_BYTES) continue
    controller.abort()
    return { kind, text: text.slice(0, SHOWN_BYTES), more: true }
  }
  return { kind, text, more: false }
}
