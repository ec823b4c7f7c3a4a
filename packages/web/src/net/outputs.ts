/** The stored output of a call, read by byte range. */
import { urlOf } from './call.ts'
import { ApiError } from './http.ts'

/** The URL of a call's whole output. */
export function outputUrl(sessionId: string, callId: string): string {
  return urlOf('getOutput', { params: { id: sessionId, callId } })
}

/**
 * Text of the bytes `from` (inclusive) to `to` (exclusive). What is not UTF-8 is shown as
 * replacement characters.
 */
export async function fetchOutputRange(
  url: string,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<string> {
  if (to <= from) return ''
  const { whole, bytes } = await fetchBytes(url, `bytes=${from}-${to - 1}`, signal)
  return new TextDecoder().decode(whole ? bytes.subarray(from, to) : bytes)
}

/** Text of the last `bytes` bytes that are stored. */
export async function fetchOutputTail(url: string, bytes: number, signal?: AbortSignal): Promise<string> {
  return new TextDecoder().decode((await fetchBytes(url, `bytes=-${bytes}`, signal)).bytes.slice(-bytes))
}

async function fetchBytes(
  url: string,
  range: string,
  signal: AbortSignal | undefined,
): Promise<{ whole: boolean; bytes: Uint8Array }> {
  const response = await fetch(url, {
    credentials: 'same-origin',
    headers: { range },
    signal,
  })
  if (!response.ok) throw new ApiError('unexpected', `Couldn’t load the output (${response.status}).`)
  // A service that ignores ranges answers 200 with everything.
  return { whole: response.status !== 206, bytes: new Uint8Array(await response.arrayBuffer()) }
}
