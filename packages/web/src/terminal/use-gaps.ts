/** Missing bytes of a live output, fetched by range from what is stored. Only small gaps: the rest is a link away. */
import { useEffect, useMemo, useRef, useState } from 'react'
import { gapsOf, type LiveOutput } from '@sandlot/shared/live-output'
import { fetchOutputRange } from '../net/outputs.ts'
import type { Filled } from './live-ansi.ts'

/** Bytes. The snapshot of a resume holds 64 KiB of the end; what lies before a longer one is not worth the wait. */
const LARGEST_GAP = 64 * 1024
const NOTHING: Filled = new Map()

export function useFilledGaps(output: LiveOutput, url: string): Filled {
  const [filled, setFilled] = useState<Filled>(NOTHING)
  const asked = useRef(new Set<number>())
  const gaps = useMemo(() => gapsOf(output).filter((gap) => gap.to - gap.from <= LARGEST_GAP), [output])
  useEffect(() => {
    for (const gap of gaps) {
      if (asked.current.has(gap.from)) continue
      asked.current.add(gap.from)
      fetchOutputRange(url, gap.from, gap.to).then(
        (text) => setFilled((known) => new Map(known).set(gap.from, text)),
        // Not tried again: the notice in its place leads to the whole output.
        (error: unknown) => console.warn('A gap in the output stays open.', error),
      )
    }
  }, [gaps, url])
  return filled
}
