/** The stored output of a call, read by byte range. */
import { ApiError } from './http.ts'

/** Where the whole output of a call is. `download` makes the browser save it. */
export function outputUrl(sessionId: string, callId: string, options: { download?: boolean } = {}): string {
  const path = `/api/sessions/${encodeURIComponent(sessionId)}/outputs/${encodeURIComponent(callId)}`
  return options.download === true ? `${path}?download=1` : path
}

/** Text of the bytes `from` (inclusive) to `to` (exclusive). What is not UTF-8 is shown as replacement characters. */
export async function fetchOutputRange(
  url: string,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<string> {
  if (to <= from) return ''
  const response = await fetch(url, {
    credentials: 'same-origin',
    headers: { range: `bytes=${from}-${to - 1}` },
    ...(signal === undefined ? {} : { signal }),
  })
  if (!response.ok) throw new ApiError('unexpected', `The output could not be read (${response.status}).`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  // A service that ignores ranges answers 200 with everything.
  return new TextDecoder().decode(response.status === 206 ? bytes : bytes.subarray(from, to))
}
