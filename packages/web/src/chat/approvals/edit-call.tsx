/**
 * A call's arguments, to be changed before it is allowed: a form by the tool's schema, or JSON; and
 * what was changed in it, afterwards.
 */
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import type { CallEntry } from '@sandlot/shared/transcript/entries'
import { type SubmitEvent, useId, useRef, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { formatCount } from '../../lib/format.ts'
import { call as callService } from '../../net/call.ts'
import { useAttempt } from '../../lib/use-attempt.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { DiffView } from '../../preview/diff-view.tsx'
import { useOther } from '../../state/reading.ts'
import { type EditField, changesOf, editFields, editValues, editedInput, editedJson } from './edit-form.ts'

const MOST_ROWS = 16
const AREA = `${INPUT} h-auto min-h-10 resize-y py-2 font-mono leading-5`
const PLAIN = { autoCapitalize: 'off', autoCorrect: 'off', spellCheck: false, dir: 'auto' } as const

interface EditProps {
  call: CallEntry
  sessionId: string
  optionId: string
  onClose: () => void
}

export function EditCall(props: EditProps) {
  const { call, sessionId } = props
  const { data, problem } = useResource(sessionId, (signal) =>
    callService('listApprovals', { params: { id: sessionId }, signal }),
  )
  const schema = data?.approvals.find(({ callId }) => callId === call.id)?.schema
  const fields = data === null ? (problem === null ? undefined : null) : editFields(schema, call.rawInput)
  return (
    <div
      data-testid="edit-call"
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.stopPropagation()
        props.onClose()
      }}
      className="flex flex-col gap-3 rounded-lg border border-line bg-panel p-3"
    >
      {problem !== null && <Alert>{problem}</Alert>}
      {fields === undefined ? (
        <p role="status" className="text-sm text-muted">
          Loading form…
        </p>
      ) : fields === null ? (
        <JsonForm {...props} />
      ) : (
        <FieldsForm {...props} fields={fields} />
      )}
    </div>
  )
}

function FieldsForm(props: EditProps & { fields: readonly EditField[] }) {
  const { call, fields } = props
  const [before] = useState(() => editValues(fields, call.rawInput))
  const [values, setValues] = useState(before)
  const [all, setAll] = useState(false)
  // Optional fields without a value are rarely changed.
  const shown = fields.filter(({ name, required }) => all || required || before[name] !== '')
  return (
    <ChangeForm {...props} read={() => editedInput(fields, values)}>
      {shown.map((field, at) => (
        <FieldInput
          key={field.name}
          field={field}
          value={values[field.name] ?? ''}
          first={at === 0}
          onChange={(value) => setValues({ ...values, [field.name]: value })}
        />
      ))}
      {shown.length < fields.length && (
        <Button size="sm" variant="ghost" className="self-start" onClick={() => setAll(true)}>
          {formatCount(fields.length - shown.length, 'more argument')}
        </Button>
      )}
    </ChangeForm>
  )
}

function JsonForm(props: EditProps) {
  const [text, setText] = useState(() => stringifyExactly(props.call.rawInput, 2) ?? '{}')
  const id = useId()
  return (
    <ChangeForm {...props} read={() => editedJson(text)}>
      <label htmlFor={id} className="text-xs font-medium text-muted">
        Arguments as JSON
      </label>
      <textarea
        id={id}
        {...PLAIN}
        autoFocus
        className={AREA}
        rows={rowsOf(text)}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
    </ChangeForm>
  )
}

/** `read`: the arguments as they are filled in now. */
function ChangeForm(
  props: EditProps & {
    read: () => { input: Record<string, unknown> } | { problem: string }
    children: React.ReactNode
  },
) {
  const { call, sessionId, optionId } = props
  const { busy, problem, attempt } = useAttempt()
  const form = useRef<HTMLFormElement>(null)
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void attempt(async () => {
      const read = props.read()
      if ('problem' in read) throw new Error(read.problem)
      await callService('answerApproval', {
        params: { id: sessionId, callId: call.id },
        body: { optionId, input: read.input },
      })
    })
  }
  return (
    <form
      ref={form}
      aria-label={`Change ${call.title}`}
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.altKey) return
        event.preventDefault()
        form.current?.requestSubmit()
      }}
      className="flex flex-col gap-3"
    >
      {props.children}
      {problem !== null && <Alert>{problem}</Alert>}
      <div className="flex flex-wrap items-center gap-1.5">
        <Button type="submit" variant="primary" disabled={busy} className="h-8 px-3 pointer-coarse:flex-1">
          Run as changed
        </Button>
        <Button className="h-8 px-3 pointer-coarse:flex-1" onClick={props.onClose}>
          Back
        </Button>
        <span className="text-xs text-muted pointer-coarse:hidden">
          Rules apply to the edited call, and the model is told what you changed.
        </span>
      </div>
    </form>
  )
}

function FieldInput(props: {
  field: EditField
  value: string
  first: boolean
  onChange: (value: string) => void
}) {
  const { field, value, first } = props
  const id = useId()
  const shared = {
    id,
    value,
    required: field.required && field.type !== 'text',
    autoFocus: first,
    'aria-describedby': field.about === undefined ? undefined : `${id}-about`,
    onChange: ({ target }: { target: { value: string } }) => props.onChange(target.value),
  }
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-mono text-xs font-medium text-ink">
        {field.name}
        {!field.required && <span className="ml-2 font-sans font-normal text-faint">optional</span>}
      </label>
      {field.type === 'choice' || field.type === 'boolean' ? (
        <select {...shared} className={`${INPUT} w-auto`}>
          {!field.required && <option value="">as the tool does by itself</option>}
          {(field.type === 'boolean' ? ['true', 'false'] : field.choices).map((choice) => (
            <option key={choice} value={choice}>
              {field.type === 'boolean' ? (choice === 'true' ? 'yes' : 'no') : choice}
            </option>
          ))}
        </select>
      ) : field.type === 'text' || field.type === 'json' ? (
        <textarea {...shared} {...PLAIN} className={AREA} rows={rowsOf(value)} />
      ) : (
        <input
          {...shared}
          {...PLAIN}
          inputMode={field.type === 'number' ? 'decimal' : undefined}
          className={`${INPUT} font-mono`}
        />
      )}
      {field.about !== undefined && (
        <p id={`${id}-about`} className="text-xs text-faint">
          {field.about}
        </p>
      )}
    </div>
  )
}

function rowsOf(text: string): number {
  return Math.min(MOST_ROWS, Math.max(1, text.split('\n').length))
}

/** The fields of the call that a person changed before allowing it. */
export function ChangedCall(props: { call: CallEntry }) {
  const { rawInput, approval } = props.call
  const other = useOther(approval?.answer?.author)
  const input = approval?.answer?.input
  if (input === undefined) return null
  const changes = changesOf(rawInput, input)
  return (
    <section data-testid="changed-call" aria-label="What was changed" className="flex flex-col gap-1.5">
      <p className="text-sm text-muted">
        {other === null ? 'You' : <Revealed text={other.name} />}{' '}
        {changes.length === 0 ? 'reviewed this call without changes.' : 'changed this call before it ran.'}
      </p>
      {changes.map(({ name, oldText, newText }) => (
        <DiffView key={name} path={name} oldText={oldText} newText={newText} file={null} />
      ))}
    </section>
  )
}
