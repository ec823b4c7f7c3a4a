/** The stored output of a finished call, once somebody looks: all of it, or its beginning and its end. */
import { messageOf } from '@sandlot/shared/errors'
import { useEffect, useState } from 'react'
import { formatBytes } from '../lib/format.ts'
import { fetchOutputRange, fetchOutputTail } from '../net/outputs.ts'
import { AnsiText, type Rendered } from './ansi-text.ts'

/** Bytes. */
const WHOLE = 64 * 1024
const HEAD = 16 * 1024
const TAIL = 32 * 1024
/** Only a text of very short lines has more in that many bytes. */
const MAX_LINES = 15_000

export type StoredOutput =
  | { state: 'loading' }
  | { state: 'ready'; rendered: Rendered }
  | { state: 'unreadable'; message: string }

/** `bytes`: how many are stored. `wanted` false: nothing is fetched. */
export function useStoredOutput(bytes: number, url: string, wanted: boolean): StoredOutput {
  const [output, setOutput] = useState<StoredOutput>({ state: 'loading' })
  useEffect(() => {
    if (!wanted) return
    const controller = new AbortController()
    readOutput(url, bytes, controller.signal).then(
      (rendered) => setOutput({ state: 'ready', rendered }),
      (error: unknown) => {
        if (!controller.signal.aborted) setOutput({ state: 'unreadable', message: messageOf(error) })
      },
    )
    return () => controller.abort()
  }, [url, bytes, wanted])
  return output
}

async function readOutput(url: string, bytes: number, signal: AbortSignal): Promise<Rendered> {
  const ansi = new AnsiText(MAX_LINES)
  if (bytes <= WHOLE) {
    ansi.feed(await fetchOutputRange(url, 0, bytes, signal))
  } else {
    const [head, tail] = await Promise.all([
      fetchOutputRange(url, 0, HEAD, signal),
      fetchOutputTail(url, TAIL, signal),
    ])
    ansi.feed(head)
    ansi.feed(`\u001b[0m\n\n⋯ ${formatBytes(bytes - HEAD - TAIL)} in between are not shown here ⋯\n\n`)
    ansi.feed(tail)
  }
  return ansi.render()
}
