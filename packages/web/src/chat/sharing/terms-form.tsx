/** Terms of a share: access, mode, approvals and end. */
import type { Mode } from '@sandlot/shared/chat/mode'
import type { NewShare } from '@sandlot/shared/chat/shares'
import { type SubmitEvent, useId, useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { formatDate } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { END_CHOICES, type EndChoice, endOf } from './ends.ts'

export type Terms = Pick<NewShare, 'access' | 'mode' | 'mayApprove' | 'expiresAt'>

const MODE_MEANS: Record<Mode, string> = {
  manual: 'Read; everything else asks',
  'auto-edit': 'Edit files; commands ask',
  auto: 'Also run commands, if there’s no network',
  yolo: 'Run everything unless a rule denies it',
}

export function TermsForm(props: {
  terms: Terms
  busy: boolean
  action: string
  onSave: (terms: Terms) => void
  onCancel: () => void
}) {
  const { terms } = props
  const [access, setAccess] = useState(terms.access)
  const [mode, setMode] = useState(terms.mode)
  const [mayApprove, setMayApprove] = useState(terms.mayApprove)
  const [ends, setEnds] = useState<EndChoice | 'unchanged'>(terms.expiresAt === null ? 'never' : 'unchanged')
  const save = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const expiresAt = ends === 'unchanged' ? terms.expiresAt : endOf(ends)
    props.onSave({ access, mode, mayApprove, expiresAt })
  }
  return (
    <form onSubmit={save} className="flex flex-col gap-3.5">
      <AccessChoice access={access} onChoose={setAccess} />
      {access === 'take_part' && (
        <label className="flex flex-col gap-1.5 text-sm font-medium">
          What their messages may do
          <select className={INPUT} value={mode} onChange={({ target }) => setMode(target.value as Mode)}>
            {Object.entries(MODE_MEANS).map(([value, means]) => (
              <option key={value} value={value}>
                {means}
              </option>
            ))}
          </select>
        </label>
      )}
      <label className="flex min-h-6 items-center gap-2.5 text-sm pointer-coarse:min-h-11">
        <input
          type="checkbox"
          className="size-4 accent-accent"
          checked={mayApprove}
          onChange={(event) => setMayApprove(event.target.checked)}
        />
        <span>
          May answer approvals
          <span className="block text-xs text-muted">
            {access === 'watch'
              ? 'Can allow or deny calls, but not edit them.'
              : 'Can also edit calls before they run in your sandbox.'}
          </span>
        </span>
      </label>
      <EndSelect value={ends} end={terms.expiresAt} onChange={setEnds} />
      <div className="flex justify-end gap-2">
        <Button onClick={props.onCancel}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={props.busy}>
          {props.action}
        </Button>
      </div>
    </form>
  )
}

function AccessChoice(props: { access: Terms['access']; onChoose: (access: Terms['access']) => void }) {
  const { access } = props
  const name = useId()
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="sr-only">What they may do</legend>
      <Choice
        name={name}
        title="Watch"
        text="Read along live."
        checked={access === 'watch'}
        onChoose={() => props.onChoose('watch')}
      />
      <Choice
        name={name}
        title="Take part"
        text="Also send messages and comments, and stop running work."
        checked={access === 'take_part'}
        onChoose={() => props.onChoose('take_part')}
      />
    </fieldset>
  )
}

function Choice(props: {
  name: string
  title: string
  text: string
  checked: boolean
  onChoose: () => void
}) {
  return (
    <label
      className={cn(
        'flex cursor-pointer items-start gap-2.5 rounded-lg border px-3 py-2 text-sm has-focus-visible:outline-2 has-focus-visible:outline-accent',
        props.checked ? 'border-accent-line bg-accent-wash' : 'border-line hover:bg-hover',
      )}
    >
      <input
        type="radio"
        name={props.name}
        className="mt-0.5 size-4 shrink-0 accent-accent"
        checked={props.checked}
        onChange={props.onChoose}
      />
      <span>
        <span className="block font-medium">{props.title}</span>
        <span className="block text-xs text-muted">{props.text}</span>
      </span>
    </label>
  )
}

/** `unchanged` is the end that the share already has. */
function EndSelect(props: {
  value: EndChoice | 'unchanged'
  end: number | null
  onChange: (value: EndChoice | 'unchanged') => void
}) {
  const { value, end } = props
  return (
    <label className="flex flex-col gap-1.5 text-sm font-medium">
      Until
      <select
        className={INPUT}
        value={value}
        onChange={({ target }) => props.onChange(target.value as EndChoice | 'unchanged')}
      >
        {end !== null && <option value="unchanged">{formatDate(end)}</option>}
        {Object.entries(END_CHOICES).map(([choice, { name }]) => (
          <option key={choice} value={choice}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
