import { messageOf } from '@sandlot/shared/base/errors'
import { useState } from 'react'

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
