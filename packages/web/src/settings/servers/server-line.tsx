/** One server in a list: how it stands, what can be done about it, and its tools. */
import type { GivenServer, ServerStateView, ServerView } from '@sandlot/shared/admin/mcp-servers'
import { LogIn, LogOut, Pencil, RefreshCw, Trash2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { cn } from '../../lib/cn.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Spinner } from '../../ui/spinner.tsx'

interface Acts {
  /** It is being asked now. */
  testing: boolean
  busy: boolean
  onTest: () => void
  onSignIn: () => void
  onSignOut: () => void
}

/** Choices about its tools. */
type Choice = Pick<ServerView, 'off' | 'readOnly'>

export function AddedLine(
  props: Acts & {
    server: ServerView
    onEdit: () => void
    onRemove: () => void
    onSwitch: (enabled: boolean) => void
    onChoose: (choice: Partial<Choice>) => void
  },
) {
  const { server, busy } = props
  const { name, enabled, connection, status } = server
  const place =
    connection.kind === 'http'
      ? [connection.url, ...headerWords(connection.headers)].join(' · ')
      : [connection.command, ...connection.args].join(' ')
  return (
    <li aria-label={name} className="flex flex-col gap-2 px-3 py-2.5 text-sm">
      <div className="flex items-start gap-1">
        <Head name={name} place={place} status={status} testing={props.testing} />
        <IconButton label={`Change ${name}`} onClick={props.onEdit}>
          <Pencil aria-hidden />
        </IconButton>
        <IconButton label={`Remove ${name}`} onClick={props.onRemove}>
          <Trash2 aria-hidden />
        </IconButton>
      </div>
      <Why status={status} />
      <div className="flex flex-wrap items-center gap-2">
        <label className="mr-auto flex items-center gap-2 text-sm pointer-coarse:min-h-11">
          <input
            type="checkbox"
            role="switch"
            className="size-4 accent-accent"
            aria-label={`Use ${name}`}
            checked={enabled}
            disabled={busy}
            onChange={({ target }) => props.onSwitch(target.checked)}
          />
          {enabled ? 'On' : 'Off'}
        </label>
        {enabled && status.state !== 'off' && <ActButtons name={name} {...props} status={status} />}
      </div>
      {status.state === 'ready' && (
        <Tools name={name} status={status} choice={server} busy={busy} onChoose={props.onChoose} />
      )}
    </li>
  )
}

/** A server of the configuration, or of the deployment: not changed here. */
export function GivenLine(props: Acts & { server: GivenServer }) {
  const { name, place, status } = props.server
  return (
    <li aria-label={name} className="flex flex-col gap-2 px-3 py-2.5 text-sm">
      <div className="flex flex-wrap items-start gap-2">
        <Head name={name} place={place} status={status} testing={props.testing} />
        {status.state !== 'off' && <ActButtons name={name} {...props} status={status} />}
      </div>
      <Why status={status} />
      {status.state === 'ready' && <Tools name={name} status={status} />}
    </li>
  )
}

function headerWords(headers: readonly string[]): string[] {
  return headers.length === 0 ? [] : [`with ${headers.join(', ')}`]
}

function Head(props: { name: string; place: string; status: ServerStateView; testing: boolean }) {
  return (
    <div className="min-w-0 flex-1 basis-52">
      <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className="font-medium [overflow-wrap:anywhere]">{props.name}</span>
        <StateMark status={props.status} testing={props.testing} />
      </p>
      <p className="mt-0.5 text-xs text-muted [overflow-wrap:anywhere]">{props.place}</p>
    </div>
  )
}

const STATE: Record<ServerStateView['state'], { words: string; look: string }> = {
  off: { words: 'Off', look: 'bg-sunken text-muted' },
  idle: { words: 'Not connected yet', look: 'bg-sunken text-muted' },
  connecting: { words: 'Connecting…', look: 'bg-sunken text-muted' },
  ready: { words: 'Ready', look: 'bg-well-wash text-well' },
  needs_auth: { words: 'Needs a sign-in', look: 'bg-waiting-wash text-waiting' },
  unavailable: { words: 'Failed', look: 'bg-failed-wash text-failed' },
}

function StateMark(props: { status: ServerStateView; testing: boolean }) {
  const { words, look } = STATE[props.testing ? 'connecting' : props.status.state]
  return (
    <span
      role="status"
      className={cn('flex items-center gap-1.5 rounded-full px-2 py-0.5 text-xs font-medium', look)}
    >
      {props.testing && <Spinner className="size-3" />}
      {words}
    </span>
  )
}

function Why({ status: { state, why } }: { status: ServerStateView }) {
  if (why === undefined) return null
  return (
    <p
      className={cn(
        'text-xs [overflow-wrap:anywhere]',
        state === 'unavailable' ? 'text-failed' : 'text-muted',
      )}
    >
      {sentence(why)}
    </p>
  )
}

/** A reason as a sentence of its own. */
function sentence(why: string): string {
  const begun = why.charAt(0).toUpperCase() + why.slice(1)
  return /[.!?]$/.test(begun) ? begun : `${begun}.`
}

function ActButtons(props: Acts & { name: string; status: ServerStateView }): ReactNode {
  const { name, status, testing, busy } = props
  return (
    <div className="flex flex-wrap gap-2">
      {status.state === 'needs_auth' && status.why === undefined && (
        <Button
          size="sm"
          variant="primary"
          disabled={busy || testing}
          aria-label={`Sign in to ${name}`}
          onClick={props.onSignIn}
        >
          <LogIn className="size-3.5" aria-hidden /> Sign in
        </Button>
      )}
      {status.signedIn === true && (
        <Button
          size="sm"
          disabled={busy || testing}
          aria-label={`Sign out of ${name}`}
          onClick={props.onSignOut}
        >
          <LogOut className="size-3.5" aria-hidden /> Sign out
        </Button>
      )}
      <Button size="sm" disabled={busy || testing} aria-label={`Test ${name}`} onClick={props.onTest}>
        <RefreshCw className="size-3.5" aria-hidden /> Test
      </Button>
    </div>
  )
}

/** Without `choice`: they are listed only. */
function Tools(props: {
  name: string
  status: ServerStateView
  choice?: Choice
  busy?: boolean
  onChoose?: (choice: Partial<Choice>) => void
}) {
  const { name, status, choice, onChoose } = props
  const { tools, problems } = status
  const off = choice?.off ?? []
  const on = tools.filter((tool) => !off.includes(tool.name)).length
  const count = `${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`
  return (
    <details className="rounded-lg border border-line">
      <summary className="cursor-pointer px-3 py-1.5 text-xs text-muted hover:text-ink pointer-coarse:py-3.5">
        {on === tools.length ? count : `${count}, ${on} of them on`}
      </summary>
      {choice !== undefined && tools.length > 0 && (
        <label className="flex flex-wrap items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
          Run without approval
          <select
            aria-label={`Tools of ${name} that run without approval`}
            className="h-8 rounded-md border border-line-strong bg-raised px-2 text-xs text-ink pointer-coarse:h-11"
            value={choice.readOnly === 'as-announced' ? 'as-announced' : 'ticked'}
            disabled={props.busy}
            onChange={({ target }) =>
              onChoose?.({ readOnly: target.value === 'as-announced' ? 'as-announced' : [] })
            }
          >
            <option value="ticked">those marked “read-only”</option>
            <option value="as-announced">those the server marks read-only</option>
          </select>
        </label>
      )}
      <ul aria-label={`Tools of ${name}`} className="divide-y divide-line border-t border-line">
        {tools.map((tool) => (
          <ToolRow key={tool.name} tool={tool} choice={choice} busy={props.busy} onChoose={onChoose} />
        ))}
      </ul>
      {problems.length > 0 && (
        <ul
          aria-label={`Unavailable tools of ${name}`}
          className="border-t border-line px-3 py-2 text-xs text-waiting [overflow-wrap:anywhere]"
        >
          {problems.slice(0, 20).map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
        </ul>
      )}
    </details>
  )
}

function ToolRow(props: {
  tool: ServerStateView['tools'][number]
  choice: Choice | undefined
  busy: boolean | undefined
  onChoose: ((choice: Partial<Choice>) => void) | undefined
}) {
  const { tool, choice, busy, onChoose } = props
  const { name, description } = tool
  const words = (
    <span className="min-w-0 flex-1">
      <code className="text-xs font-medium [overflow-wrap:anywhere]">{name}</code>
      {description !== '' && (
        <span className="line-clamp-2 text-xs text-muted [overflow-wrap:anywhere]">{description}</span>
      )}
    </span>
  )
  if (choice === undefined) return <li className="flex px-3 py-2">{words}</li>
  const { off, readOnly } = choice
  const reads = readOnly === 'as-announced' ? tool.announcedReadOnly : readOnly.includes(name)
  return (
    <li className="flex flex-wrap items-start gap-x-4 gap-y-1 px-3 py-2">
      <label className="flex min-w-0 flex-1 basis-52 items-start gap-2.5 pointer-coarse:min-h-11">
        <input
          type="checkbox"
          className="mt-0.5 size-4 shrink-0 accent-accent"
          aria-label={`Offer ${name}`}
          checked={!off.includes(name)}
          disabled={busy}
          onChange={({ target }) =>
            onChoose?.({ off: target.checked ? off.filter((one) => one !== name) : [...off, name] })
          }
        />
        {words}
      </label>
      <label className="flex items-center gap-2 text-xs text-muted pointer-coarse:min-h-11">
        <input
          type="checkbox"
          className="size-4 accent-accent"
          aria-label={`${name} is read-only`}
          checked={reads}
          disabled={busy === true || readOnly === 'as-announced'}
          onChange={({ target }) => {
            const ticked = readOnly === 'as-announced' ? [] : readOnly
            onChoose?.({
              readOnly: target.checked ? [...ticked, name] : ticked.filter((one) => one !== name),
            })
          }}
        />
        only reads
      </label>
    </li>
  )
}
