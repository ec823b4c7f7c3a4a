/**
 * Shows the used part of the context window as a ring. Its popover lists the chat's token use, its
 * instruction files and the remaining limits.
 */
import type { Budget } from '@sandlot/shared/admin/usage'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { type InstructionFile, UNREADABLE_WORDS } from '@sandlot/shared/chat/instruction-files'
import type { Transcript } from '@sandlot/shared/transcript/transcript'
import type { Spent } from '@sandlot/shared/transcript/spent'
import { FoldVertical } from 'lucide-react'
import { type ReactNode, useRef } from 'react'
import { Link } from 'wouter'
import { cn } from '../../lib/cn.ts'
import { formatMoment } from '../../lib/format.ts'
import { budgetName, budgetUse, spentRows, tokenWords } from '../../lib/usage-text.ts'
import { Button } from '../../ui/button.tsx'
import { useChat } from '../../state/chat-context.ts'
import { Popover } from '../../ui/on-demand.tsx'

/** From here on the ring warns: at 0.8 the older part becomes a summary by itself. */
const NEAR = 0.7
const RADIUS = 6.5
const ROUND = 2 * Math.PI * RADIUS

export function ContextGauge(props: {
  context: Transcript['context']
  spent: Spent
  instructionFiles: readonly InstructionFile[]
  budgets: readonly Budget[]
  /** Null: not now. */
  onCompact: (() => void) | null
}) {
  const { instructionFiles, onCompact } = props
  const context = props.context !== null && props.context.size > 0 ? props.context : null
  const host = useRef<HTMLDivElement>(null)
  if (context === null && instructionFiles.length === 0) return null
  const share = context === null ? 0 : Math.min(1, context.used / context.size)
  const percent = Math.round(share * 100)
  const near = share >= NEAR
  const words = context === null ? 'Context use isn’t known' : `${percent} % of context used`
  return (
    <div ref={host}>
      <Popover.Root>
        <Popover.Trigger
          openOnHover
          delay={300}
          data-testid="context-gauge"
          aria-label={words}
          className={cn(
            'inline-flex h-8 items-center gap-1 rounded-lg px-1.5 text-xs tabular-nums hover:bg-hover data-popup-open:bg-hover pointer-coarse:h-11 pointer-coarse:min-w-11 pointer-coarse:justify-center',
            near ? 'text-waiting' : 'text-muted',
          )}
        >
          <Ring share={share} />
          {near && <span className="max-sm:hidden">{percent} %</span>}
        </Popover.Trigger>
        <Popover.Portal container={host}>
          <Popover.Positioner positionMethod="fixed" side="top" align="end" sideOffset={8} className="z-50">
            <Popover.Popup className="popup flex max-h-(--available-height) w-80 max-w-[calc(100vw-2rem)] flex-col gap-3 overflow-y-auto rounded-xl border border-line bg-raised p-4 text-sm text-muted shadow-3 outline-none">
              <Fullness context={context} words={words} near={near} />
              {onCompact !== null && <CompactButton onCompact={onCompact} />}
              <Details {...props} />
            </Popover.Popup>
          </Popover.Positioner>
        </Popover.Portal>
      </Popover.Root>
    </div>
  )
}

function Details({ spent, instructionFiles, budgets }: Parameters<typeof ContextGauge>[0]) {
  return (
    <>
      <Rows title="This chat" rows={spentRows(spent)} />
      {instructionFiles.length > 0 && <InstructionFiles files={instructionFiles} />}
      {budgets.length > 0 && (
        <Rows
          title="Usage limits"
          rows={budgets.map((budget) => [budgetName(budget), budgetUse(budget)] as const)}
        />
      )}
      <OwnUsageLink />
    </>
  )
}

function CompactButton({ onCompact }: { onCompact: () => void }) {
  return (
    <div>
      <Popover.Close render={<Button size="sm" />} onClick={onCompact}>
        <FoldVertical className="size-3.5" aria-hidden /> Compact now
      </Popover.Close>
    </div>
  )
}

function OwnUsageLink() {
  const { me } = useChat()
  if (me.role === 'guest') return null
  return (
    <Link
      href="/settings/usage"
      className="flex items-center text-xs text-accent hover:underline pointer-coarse:h-11"
    >
      My usage
    </Link>
  )
}

function Fullness(props: { context: Transcript['context']; words: string; near: boolean }) {
  const { context, words, near } = props
  return (
    <div>
      <Popover.Title className="text-sm font-semibold text-ink">{words}</Popover.Title>
      <p className="mt-0.5 text-xs">
        {context === null
          ? 'The provider hasn’t reported token counts in this chat.'
          : `About ${tokenWords(context.used)} of ${context.assumed ? 'an assumed ' : ''}${tokenWords(context.size)} tokens.`}{' '}
        {near
          ? 'Older messages will soon be summarised. You can do it now.'
          : 'When it’s nearly full, older messages are summarised.'}
      </p>
    </div>
  )
}

function Ring({ share }: { share: number }) {
  return (
    <svg viewBox="0 0 16 16" className="size-4 -rotate-90" aria-hidden>
      <circle cx="8" cy="8" r={RADIUS} fill="none" strokeWidth="2.5" className="stroke-line-strong" />
      <circle
        cx="8"
        cy="8"
        r={RADIUS}
        fill="none"
        strokeWidth="2.5"
        stroke="currentColor"
        strokeDasharray={`${share * ROUND} ${ROUND}`}
      />
    </svg>
  )
}

function Rows(props: { title: string; rows: readonly (readonly [string, ReactNode])[] }) {
  return (
    <section aria-label={props.title} className="border-t border-line pt-2.5 text-xs">
      <h3 className="font-medium text-ink">{props.title}</h3>
      <dl className="mt-1 flex flex-col gap-0.5">
        {props.rows.map(([name, value]) => (
          <div key={name} className="flex justify-between gap-4">
            <dt>{name}</dt>
            <dd className="text-right text-ink tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

/** Files of the workspace that the chat's agent has as instructions. */
function InstructionFiles({ files }: { files: readonly InstructionFile[] }) {
  return (
    <section aria-label="Workspace instructions" className="border-t border-line pt-2.5 text-xs">
      <h3 className="font-medium text-ink">Workspace instructions</h3>
      <ul className="mt-1 flex max-h-40 flex-col gap-1 overflow-y-auto">
        {files.map((file) => (
          <li key={file.path}>
            <p className="flex justify-between gap-4">
              <span className="[overflow-wrap:anywhere]">{file.path}</span>
              <span className="shrink-0 text-ink tabular-nums">{sizeWords(file)}</span>
            </p>
            <Remarks file={file} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function sizeWords({ bytes, given }: InstructionFile): string {
  if (bytes === undefined) return '–'
  return given === undefined ? formatBytes(bytes) : `${formatBytes(given)} of ${formatBytes(bytes)}`
}

function Remarks({ file: { given, readAt, unreadable } }: { file: InstructionFile }) {
  return (
    <>
      {given !== undefined && <p className="text-waiting">Truncated: these files exceed 32 KiB in total.</p>}
      {unreadable !== undefined && (
        <p className="text-waiting">Couldn’t be read: {UNREADABLE_WORDS[unreadable]}.</p>
      )}
      {readAt !== undefined && <p>As read on {formatMoment(readAt)}.</p>}
    </>
  )
}
