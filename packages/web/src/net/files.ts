/** Bytes of the person's workspace. Paths are relative to it. Failures are `ApiError`s. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { urlOf } from './call.ts'
import { ApiError, errorOf, jsonOf, problemOf } from './http.ts'

/** A folder as a zip file; several files and folders as one. */
export function zipUrl(...paths: readonly string[]): string {
  return urlOf('zipFiles', { query: { path: paths } })
}

/** The URL of a file's bytes. `download` makes the browser save it. */
export function fileUrl(path: string, options: { download?: boolean } = {}): string {
  return urlOf('readFile', { query: { path, download: options.download === true ? 1 : undefined } })
}

/** The path in the workspace of an absolute path of a call; null when it is outside. */
export function pathInWorkspace(path: string): string | null {
  return /^\/workspace\/(.+)$/.exec(path)?.[1] ?? null
}

/** A text to be edited. `etag` says which version it is. */
interface ReadText {
  text: string
  etag: string
}

/** The largest text that is edited in the page. */
export const EDITED_BYTES = 1024 * 1024

/** Throws `ApiError`; `too_large` and `bad_request` for what is not edited in the page. */
export async function readText(path: string, signal: AbortSignal): Promise<ReadText> {
  const response = await fetch(fileUrl(path), { signal })
  if (!response.ok) throw await problemOf(response)
  const etag = response.headers.get('etag') ?? ''
  if (Number(response.headers.get('content-length')) > EDITED_BYTES) {
    await response.body?.cancel()
    throw new ApiError(
      'too_large',
      `Files up to ${formatBytes(EDITED_BYTES)} can be edited here. Ask the agent to edit larger ones.`,
    )
  }
  const bytes = await response.arrayBuffer()
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), etag }
  } catch (error) {
    throw new ApiError('bad_request', 'This file isn’t UTF-8 text, so it can’t be edited here.', undefined, {
      cause: error,
    })
  }
}

/**
 * Answers the new version. `etag`: the one that was read, null: whatever is there is replaced.
 * Throws `conflict` where another is there, `ApiError`.
 */
export async function saveTextFile(path: string, text: string, etag: string | null): Promise<string> {
  const response = await fetch(`${fileUrl(path)}&replace=true`, {
    method: 'PUT',
    headers: etag === null ? {} : { 'if-match': etag },
    body: new Blob([text], { type: 'application/octet-stream' }),
  }).catch((error: unknown) => {
    throw new ApiError('network', 'Can’t reach Sandlot. Your text is still here.', undefined, {
      cause: error,
    })
  })
  if (!response.ok) throw await problemOf(response)
  return response.headers.get('etag') ?? ''
}

/** One request of an upload: below the limits on bodies, and sent again when it breaks. */
const PIECE_BYTES = 4 * 1024 * 1024
const TRIES = 4
const WAIT_MS = 1_000

interface UploadOptions {
  replace: boolean
  /** Bytes that are sent. */
  onProgress: (sent: number) => void
  signal: AbortSignal
}

/**
 * A file of any size, whole or not at all. Throws `ApiError`: `conflict` where something is, unless
 * it is to be replaced; and an `AbortError` when `signal` aborts.
 */
export async function uploadFile(path: string, file: Blob, options: UploadOptions): Promise<void> {
  const { replace, onProgress, signal } = options
  const upload = crypto.randomUUID()
  const url = `${fileUrl(path)}${replace ? '&replace=true' : ''}&upload=${upload}`
  try {
    for (let at = 0; at === 0 || at < file.size; at += PIECE_BYTES) {
      const piece = file.slice(at, at + PIECE_BYTES)
      const more = at + PIECE_BYTES < file.size ? '&more=true' : ''
      await sendAgain(() =>
        putPiece(`${url}&offset=${at}${more}`, piece, (sent) => onProgress(at + sent), signal),
      )
    }
  } catch (error) {
    // If this request is lost, the upload's rest expires.
    void fetch(`/api/files/uploads/${upload}`, { method: 'DELETE' }).catch(() => undefined)
    throw error
  }
}

async function sendAgain(send: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await send()
    } catch (error) {
      const passing = error instanceof ApiError && ['network', 'agent_unavailable'].includes(error.code)
      if (!passing || tries === TRIES) throw error
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS * tries))
    }
  }
}

/** `fetch` reports no upload progress. */
function putPiece(
  url: string,
  piece: Blob,
  onProgress: (sent: number) => void,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopped = () => reject(new DOMException('Upload stopped.', 'AbortError'))
    if (signal.aborted) return stopped()
    const request = new XMLHttpRequest()
    const stop = () => request.abort()
    request.open('PUT', url)
    request.setRequestHeader('content-type', 'application/octet-stream')
    request.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded))
    request.addEventListener('load', () => {
      if (request.status < 300) return resolve()
      reject(errorOf(request.status, jsonOf(request.responseText)))
    })
    // Also of a file that cannot be read any more.
    request.addEventListener('error', () =>
      reject(
        new ApiError('network', 'Couldn’t upload it: the connection was lost, or the file can’t be read.'),
      ),
    )
    request.addEventListener('abort', stopped)
    request.addEventListener('loadend', () => signal.removeEventListener('abort', stop))
    signal.addEventListener('abort', stop, { once: true })
    request.send(piece)
  })
}
