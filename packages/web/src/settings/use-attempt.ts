import { messageOf } from '@sandlot/shared/errors'
import { useState } from 'react'

export interface Attempt {
  busy: boolean
  /** What went wrong at the last try. */
  problem: string | null
  /** Try it; one thing at a time. Never rejects. */
  attempt: (work: () => Promise<void>) => Promise<void>
}

/** What a form tries at the service, and what became of it. */
export function useAttempt(): Attempt {
  const [problem, setProblem] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const attempt = async (work: () => Promise<void>) => {
    setBusy(true)
    setProblem(null)
    try {
      await work()
    } catch (error) {
      setProblem(messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  return { busy, problem, attempt }
}
