import { messageOf } from '@sandlot/shared/base/errors'
import { useEffect, useState } from 'react'

interface Attempt {
  busy: boolean
  /** The error of the last try. */
  problem: string | null
  /**
   * Try it; one thing at a time. Never rejects. `again`: the last problem is shown until it is
   * known how this goes.
   */
  attempt: (work: () => Promise<void>, again?: 'again') => Promise<void>
}

/** A form's request to the service, and its outcome. */
export function useAttempt(): Attempt {
  const [problem, setProblem] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const attempt = async (work: () => Promise<void>, again?: 'again') => {
    setBusy(true)
    if (again === undefined) setProblem(null)
    try {
      await work()
      setProblem(null)
    } catch (error) {
      setProblem(messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  return { busy, problem, attempt }
}

/** Runs `work` once, when the component is shown, and again for another `about`. */
export function useOnShow(work: () => void, about?: string): void {
  useEffect(() => {
    work()
    // `work` is a new function in each render, and does the same.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [about])
}
