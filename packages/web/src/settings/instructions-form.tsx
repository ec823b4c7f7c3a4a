import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { MAX_INSTRUCTION_BYTES } from '@sandlot/shared/base/instruction-text'
import { type SubmitEvent, useId, useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { cn } from '../lib/cn.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { INPUT } from '../ui/field.tsx'

/** A text that the agent keeps to. `load` and `save` answer what is stored. */
export function InstructionsForm(props: {
  label: string
  placeholder: string
  /** From when on it holds. */
  hold: string
  load: (signal: AbortSignal) => Promise<string>
  save: (text: string) => Promise<string>
}) {
  const id = useId()
  const { data: saved, problem, busy, change } = useResource(props.label, props.load)
  /** Null: nothing is typed. */
  const [draft, setDraft] = useState<string | null>(null)
  const text = draft ?? saved ?? ''
  const bytes = new TextEncoder().encode(text).length
  const tooLong = bytes > MAX_INSTRUCTION_BYTES
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void change(async () => {
      const stored = await props.save(text)
      setDraft(null)
      return stored
    })
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
        onChange={(event) => setDraft(event.target.value)}
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
