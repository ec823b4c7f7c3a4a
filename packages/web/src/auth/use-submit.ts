import { messageOf } from '@sandlot/shared/base/errors'
import { type SubmitEvent, useState } from 'react'

/** A form that does one thing: whether it is on its way, and what went wrong. */
export function useSubmit(work: () => Promise<void>): {
  busy: boolean
  problem: string | null
  onSubmit: (event: SubmitEvent<HTMLFormElement>) => void
} {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const onSubmit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    setProblem(null)
    work()
      .catch((error: unknown) => setProblem(messageOf(error)))
      .finally(() => setBusy(false))
  }
  return { busy, problem, onSubmit }
}
