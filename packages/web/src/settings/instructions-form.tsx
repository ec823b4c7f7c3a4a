import { MAX_INSTRUCTION_BYTES } from '@sandlot/shared/instructions'
import { messageOf } from '@sandlot/shared/errors'
import { type SubmitEvent, useEffect, useId, useState } from 'react'
import { formatBytes } from '../lib/format.ts'
import { fetchInstructions, saveInstructions } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { INPUT } from '../ui/field.tsx'
import { cn } from '../lib/cn.ts'

/** What the agent keeps to in all of a person's sessions. */
export function InstructionsForm() {
  const id = useId()
  const [saved, setSaved] = useState<string | null>(null)
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  useEffect(() => {
    fetchInstructions().then(
      (known) => {
        setSaved(known)
        setText(known)
      },
      (error: unknown) => setProblem(messageOf(error)),
    )
  }, [])
  const bytes = new TextEncoder().encode(text).length
  const tooLong = bytes > MAX_INSTRUCTION_BYTES
  const save = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    setBusy(true)
    setProblem(null)
    saveInstructions(text)
      .then(
        (kept) => {
          setSaved(kept)
          setText(kept)
        },
        (error: unknown) => setProblem(messageOf(error)),
      )
      .finally(() => setBusy(false))
  }
  return (
    <form className="flex flex-col gap-2" onSubmit={save}>
      {problem !== null && <Alert>{problem}</Alert>}
      <label htmlFor={id} className="sr-only">
        Your instructions
      </label>
      <textarea
        id={id}
        className={cn(INPUT, 'h-28 resize-y py-2')}
        value={text}
        disabled={saved === null}
        placeholder="For example: answer in German; use TypeScript; keep it short."
        onChange={(event) => setText(event.target.value)}
      />
      <div className="flex items-center gap-3">
        <p className={cn('min-w-0 flex-1 text-xs', tooLong ? 'text-failed' : 'text-muted')}>
          {formatBytes(bytes)} of {formatBytes(MAX_INSTRUCTION_BYTES)}. They hold from your next message on.
        </p>
        <Button type="submit" size="sm" disabled={busy || tooLong || saved === null || text === saved}>
          Save
        </Button>
      </div>
    </form>
  )
}
