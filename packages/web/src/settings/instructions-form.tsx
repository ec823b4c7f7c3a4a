import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { MAX_INSTRUCTION_BYTES } from '@sandlot/shared/base/instruction-text'
import { type SubmitEvent, useEffect, useId, useState } from 'react'
import { cn } from '../lib/cn.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { INPUT } from '../ui/field.tsx'
import { useAttempt } from '../lib/use-attempt.ts'

/**
 * A text that the agent keeps to. `load` and `save` answer what is kept and must keep their
 * identity.
 */
export function InstructionsForm(props: {
  label: string
  placeholder: string
  /** From when on it holds. */
  hold: string
  load: () => Promise<string>
  save: (text: string) => Promise<string>
}) {
  const { load } = props
  const id = useId()
  const [saved, setSaved] = useState<string | null>(null)
  const [text, setText] = useState('')
  const { busy, problem, attempt } = useAttempt()
  const keep = (stored: string) => {
    setSaved(stored)
    setText(stored)
  }
  useEffect(() => {
    void attempt(async () => keep(await load()))
    // `attempt` only sets state.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [load])
  const bytes = new TextEncoder().encode(text).length
  const tooLong = bytes > MAX_INSTRUCTION_BYTES
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void attempt(async () => keep(await props.save(text)))
  }
  return (
    <form className="flex flex-col gap-2" onSubmit={submit}>
      {problem !== null && <Alert>{problem}</Alert>}
      <label htmlFor={id} className="sr-only">
        {props.label}
      </label>
      <textarea
        dir="auto"
        id={id}
        className={cn(INPUT, 'h-28 resize-y py-2')}
        value={text}
        disabled={saved === null}
        aria-invalid={tooLong}
        aria-describedby={`${id}-help`}
        placeholder={props.placeholder}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="flex items-center gap-3">
        <p id={`${id}-help`} className={cn('min-w-0 flex-1 text-xs', tooLong ? 'text-failed' : 'text-muted')}>
          {formatBytes(bytes)} of {formatBytes(MAX_INSTRUCTION_BYTES)}
          {tooLong ? ': too long to be saved.' : `. ${props.hold}`}
        </p>
        <Button type="submit" size="sm" disabled={busy || tooLong || saved === null || text === saved}>
          Save
        </Button>
      </div>
    </form>
  )
}
