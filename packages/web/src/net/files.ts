/** What is in the person's workspace. Paths are relative to it. */
import { type DirectoryList, directoryList } from '@sandlot/shared/files'
import { z } from 'zod'
import { call, send } from './http.ts'

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

/** Put a file there. Throws `ApiError`: `conflict` where something is, unless it is to be replaced. */
export async function putFile(path: string, file: Blob, options: { replace: boolean }): Promise<void> {
  await send(z.unknown(), 'PUT', `${fileUrl(path)}${options.replace ? '&replace=true' : ''}`, {
    type: 'application/octet-stream',
    body: file,
  })
}
