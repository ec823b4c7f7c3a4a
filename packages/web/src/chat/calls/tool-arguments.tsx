import { useMemo, useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { formatCount } from '../../lib/format.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { type ShownField, shownArguments } from '@sandlot/shared/transcript/call-arguments'

/** Shorter values stand in a file by accident. */
const TELLING_CHARS = 12

/**
 * The whole command and all arguments. `whole`: nothing is folded away or left out, as under an
 * approval. `known`: texts that the card shows elsewhere, as the sides of a diff; an argument that
 * is a part of one is not shown twice, nor what the title says letter for letter.
 */
export function ToolArguments(props: {
  rawInput: unknown
  whole: boolean
  known: readonly string[]
  title: string
}) {
  const shown = useMemo(() => shownArguments(props.rawInput), [props.rawInput])
  const isKnown = ({ text }: ShownField) =>
    !props.whole && text.length >= TELLING_CHARS && props.known.some((other) => other.includes(text))
  const fields = shown.fields.filter((field) => !isKnown(field) && field.text !== props.title)
  const short = fields.filter((field) => !field.long)
  const long = fields.filter((field) => field.long)
  return (
    <>
      {shown.command !== undefined && <CommandLine command={shown.command} whole={props.whole} />}
      {shown.raw !== undefined && <LongText name="arguments" text={shown.raw} whole={props.whole} />}
      {short.length > 0 && (
        <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-0.5 text-xs">
          {short.map((field) => (
            <ShortField key={field.name} field={field} />
          ))}
        </dl>
      )}
      {long.map((field) => (
        <LongText key={field.name} name={field.name} text={field.text} whole={props.whole} />
      ))}
    </>
  )
}

function ShortField(props: { field: ShownField }) {
  return (
    <>
      <dt className="text-muted">{props.field.name}</dt>
      <dd className="min-w-0 font-mono [overflow-wrap:anywhere] whitespace-pre-wrap text-ink">
        <Revealed text={props.field.text} />
      </dd>
    </>
  )
}

function CommandLine(props: { command: string; whole: boolean }) {
  return (
    <div className="relative flex items-start gap-2 rounded-md border border-line bg-sunken py-1.5 pr-9 pl-3 pointer-coarse:pr-11">
      <span className="term text-faint select-none" aria-hidden>
        $
      </span>
      <div className="min-w-0 flex-1" data-testid="tool-command">
        <Folding text={props.command} whole={props.whole} className="term" />
      </div>
      <CopyButton
        text={props.command}
        what="command"
        quiet
        className="absolute top-0.5 right-0.5 pointer-coarse:-top-1"
      />
    </div>
  )
}

function LongText(props: { name: string; text: string; whole: boolean }) {
  return (
    <div className="overflow-hidden rounded-md border border-line bg-sunken">
      <div className="flex items-center justify-between pt-1 pr-1.5 pl-3 text-xs text-muted">
        <span>{props.name}</span>
        <CopyButton text={props.text} what={props.name} quiet className="h-6 pointer-coarse:h-11" />
      </div>
      <div className="px-3 pb-2">
        <Folding text={props.text} whole={props.whole} className="term" />
      </div>
    </div>
  )
}

const FOLDED_LINES = 12
const FOLDED_CHARS = 1200

/** A text that is folded when it is long and no approval is pending. */
function Folding(props: { text: string; whole: boolean; className: string }) {
  const [open, setOpen] = useState(false)
  const lines = props.text.split('\n')
  const long = !props.whole && (lines.length > FOLDED_LINES + 2 || props.text.length > FOLDED_CHARS * 1.25)
  const shown = long && !open ? lines.slice(0, FOLDED_LINES).join('\n').slice(0, FOLDED_CHARS) : props.text
  return (
    <>
      <pre className={cn(props.className, 'text-ink')}>
        <Revealed text={shown} />
      </pre>
      {long && (
        <button
          type="button"
          onClick={() => setOpen(!open)}
          aria-expanded={open}
          className="mt-1 rounded text-xs pointer-coarse:min-h-11 font-medium text-accent hover:underline"
        >
          {open ? 'Show less' : `Show all ${formatCount(lines.length, 'line')}`}
        </button>
      )}
    </>
  )
}
