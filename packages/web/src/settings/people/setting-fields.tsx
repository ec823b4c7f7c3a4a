/** The fields that settings of the agent are made of. */
import { type ReactNode, useId, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { cn } from '../../lib/cn.ts'
import { limitWords, NOT_EDITABLE } from './setting-words.ts'

/** One setting: whether it is set here, what holds where it is not, and its value. */
export function Setting(props: {
  title: string
  hint: string
  on: boolean
  onSet: (on: boolean) => void
  children: ReactNode
}) {
  const id = useId()
  return (
    <div className="p-3">
      <label className="flex items-start gap-2.5 pointer-coarse:min-h-11">
        <input
          type="checkbox"
          className="mt-0.5 size-4 shrink-0 accent-accent"
          checked={props.on}
          aria-labelledby={`${id}-title`}
          aria-describedby={id}
          onChange={({ target }) => props.onSet(target.checked)}
        />
        <span className="min-w-0">
          <span id={`${id}-title`} className="block text-sm font-medium">
            {props.title}
          </span>
          <span id={id} className="block text-xs text-muted [overflow-wrap:anywhere]">
            {props.hint}
          </span>
        </span>
      </label>
      {props.on && <div className="mt-2.5 pl-6.5">{props.children}</div>}
    </div>
  )
}

export function Choice<V extends string>(props: {
  label: string
  value: V
  choices: readonly (readonly [V, string])[]
  onChange: (value: V) => void
}) {
  return (
    <select
      aria-label={props.label}
      className={INPUT}
      value={props.value}
      onChange={({ target }) => {
        const chosen = props.choices.find(([value]) => value === target.value)
        if (chosen !== undefined) props.onChange(chosen[0])
      }}
    >
      {props.choices.map(([value, words]) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </select>
  )
}

/** A choice of a few known names; a removed name is shown while it is chosen. */
export function Names(props: {
  label: string
  offered: readonly string[]
  value: string[]
  onChange: (value: string[]) => void
}) {
  const { offered, value, onChange } = props
  if (offered.length === 0)
    return <Lines label={`${props.label}, one a line`} value={value} onChange={onChange} />
  const all = [...offered, ...value.filter((name) => !offered.includes(name))]
  return (
    <div role="group" aria-label={props.label} className="grid gap-x-4 gap-y-1.5 sm:grid-cols-2">
      {all.map((name) => (
        <label key={name} className="flex min-h-7 items-center gap-2.5 text-sm pointer-coarse:min-h-11">
          <input
            type="checkbox"
            className="size-4 shrink-0 accent-accent"
            checked={value.includes(name)}
            onChange={({ target }) =>
              onChange(target.checked ? [...value, name] : value.filter((one) => one !== name))
            }
          />
          <span className="min-w-0 truncate">{name}</span>
          {!offered.includes(name) && <span className="text-xs text-muted">not there any more</span>}
        </label>
      ))}
    </div>
  )
}

export function Lines(props: {
  label: string
  placeholder?: string
  value: readonly string[]
  onChange: (value: string[]) => void
}) {
  // Typed text stays as it is typed, also an unfinished line.
  const [text, setText] = useState(props.value.join('\n'))
  return (
    <textarea
      aria-label={props.label}
      placeholder={props.placeholder}
      spellCheck={false}
      className={cn(INPUT, 'h-24 resize-y py-2 font-mono')}
      value={text}
      onChange={({ target }) => {
        setText(target.value)
        const lines = target.value.split('\n').map((line) => line.trim())
        props.onChange(lines.filter((line) => line !== ''))
      }}
    />
  )
}

/** A limit of the previous version: enforced as long as it is there. */
export function LegacyLimit(props: { label: string; value: number; onRemove: () => void }) {
  const { label, value, onRemove } = props
  return (
    <p className="mt-3 flex items-center gap-2 text-xs text-muted">
      <span className="min-w-0 flex-1">
        {label}: {limitWords(value)}, {NOT_EDITABLE}
      </span>
      <Button size="sm" aria-label={`Remove: ${label}`} onClick={onRemove}>
        Remove
      </Button>
    </p>
  )
}

export function LimitField(props: {
  label: string
  value: number | undefined
  step: number | 'any'
  without: string
  onChange: (value: number | undefined) => void
}) {
  const id = useId()
  return (
    <div>
      <label htmlFor={id} className="text-xs text-muted">
        {props.label}
      </label>
      <input
        id={id}
        type="number"
        min={0}
        step={props.step}
        inputMode="decimal"
        className={cn(INPUT, 'mt-1')}
        placeholder={props.without}
        value={props.value ?? ''}
        onChange={({ target }) => props.onChange(target.value === '' ? undefined : Number(target.value))}
      />
    </div>
  )
}
