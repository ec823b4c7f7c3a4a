import { messageOf } from '@sandlot/shared/base/errors'
import { MAX_TERMINALS } from '@sandlot/shared/workspace/terminals'
import { ClipboardPaste, Copy, MessageSquareShare, Plus, SquareTerminal, X } from 'lucide-react'
import { type RefObject, useEffect, useRef, useState } from 'react'
import { handToComposer } from '../state/composer-text.ts'
import { cn } from '../lib/cn.ts'
import { call } from '../net/call.ts'
import { useAttempt } from '../lib/use-attempt.ts'
import { Alert } from '../ui/alert.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { writeClipboard } from '../ui/copy-button.tsx'
import { EmptyPlace } from '../ui/empty-place.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { showToast } from '../ui/toasts.tsx'
import { LiveTerminal, type TerminalState } from '../terminal/live-terminal.ts'
import { codeBlock } from '../terminal/screen-text.ts'

/** Until the screen knows how much fits. */
const FIRST_SIZE = { columns: 80, rows: 24 }

/** A terminal as a tab. `number`: its name, which it keeps. */
interface Tab {
  id: string
  number: number
}

/** Shells in the person's own sandbox. */
export default function TerminalPanel() {
  const { tabs, shown, setChosen, open, end, forget, busy, problem } = useTabs()
  const [ending, setEnding] = useState<Tab | null>(null)
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {tabs !== null && tabs.length > 0 && (
        <TabBar
          tabs={tabs}
          shown={shown}
          busy={busy}
          onChoose={setChosen}
          onClose={setEnding}
          onNew={() => void open()}
        />
      )}
      {problem !== null && (
        <div className="shrink-0 p-3">
          <Alert>{problem}</Alert>
        </div>
      )}
      <p role="status" className="flex items-center gap-2 px-5 py-3 text-sm text-muted empty:hidden">
        {busy && ending === null ? (
          <>
            <Spinner /> {tabs === null ? 'Loading…' : 'Starting a shell…'}
          </>
        ) : null}
      </p>
      {tabs?.length === 0 && !busy && <NoTerminal onOpen={() => void open()} />}
      {tabs?.map((tab) => (
        <Screen
          key={tab.id}
          id={tab.id}
          label={`Terminal ${tab.number}`}
          hidden={tab.id !== shown?.id}
          onForget={() => forget(tab.id)}
        />
      ))}
      <ConfirmDialog
        title={`Close terminal ${ending?.number ?? ''}?`}
        confirm="Close"
        open={ending !== null}
        onCancel={() => setEnding(null)}
        onConfirm={() => {
          if (ending !== null) void end(ending)
          setEnding(null)
        }}
      >
        Ends its shell and everything running in it. Your files are kept.
      </ConfirmDialog>
    </div>
  )
}

function useTabs() {
  const [tabs, setTabs] = useState<readonly Tab[] | null>(null)
  const [chosen, setChosen] = useState<string | null>(null)
  const { busy, problem, attempt } = useAttempt()
  const shown = tabs?.find(({ id }) => id === chosen) ?? tabs?.at(-1)

  useEffect(() => {
    void attempt(async () =>
      setTabs((await call('listTerminals')).terminals.map(({ id }, at) => ({ id, number: at + 1 }))),
    )
    // Once.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [])

  const open = () =>
    attempt(async () => {
      const { id } = await call('openTerminal', { body: FIRST_SIZE })
      setTabs((known) => [...(known ?? []), { id, number: freeNumber(known ?? []) }])
      setChosen(id)
    })
  const forget = (id: string) => setTabs((known) => known?.filter((tab) => tab.id !== id) ?? null)
  const end = (tab: Tab) =>
    attempt(async () => {
      await call('closeTerminal', { params: { id: tab.id } })
      forget(tab.id)
    })
  return { tabs, shown, setChosen, open, end, forget, busy, problem }
}

function TabBar(props: {
  tabs: readonly Tab[]
  shown: Tab | undefined
  busy: boolean
  onChoose: (id: string) => void
  onClose: (tab: Tab) => void
  onNew: () => void
}) {
  const { tabs, shown } = props
  return (
    <div
      role="toolbar"
      aria-label="Terminals"
      className="flex shrink-0 items-center gap-1 overflow-x-auto border-b border-line px-3 py-1.5"
    >
      {tabs.map((tab) => (
        <span
          key={tab.id}
          className={cn(
            'inline-flex shrink-0 items-center rounded-md text-xs',
            tab.id === shown?.id ? 'bg-active font-medium text-ink' : 'text-muted',
          )}
        >
          <button
            type="button"
            aria-pressed={tab.id === shown?.id}
            onClick={() => props.onChoose(tab.id)}
            className="h-7 rounded-md pr-1 pl-2.5 hover:text-ink pointer-coarse:h-11"
          >
            Terminal {tab.number}
          </button>
          <IconButton
            label={`Close terminal ${tab.number}`}
            className="size-7"
            onClick={() => props.onClose(tab)}
          >
            <X aria-hidden />
          </IconButton>
        </span>
      ))}
      <IconButton
        label="New terminal"
        disabled={props.busy || tabs.length >= MAX_TERMINALS}
        onClick={props.onNew}
      >
        <Plus aria-hidden />
      </IconButton>
    </div>
  )
}

function NoTerminal({ onOpen }: { onOpen: () => void }) {
  return (
    <EmptyPlace icon={SquareTerminal} title="No terminal is open">
      <p>A private shell in your sandbox. The agent can’t see it, and it keeps running while you’re away.</p>
      <p>Approval rules apply to the agent, not to what you type here.</p>
      <Button variant="primary" onClick={onOpen}>
        Open a terminal
      </Button>
    </EmptyPlace>
  )
}

function freeNumber(tabs: readonly Tab[]): number {
  const taken = new Set(tabs.map(({ number }) => number))
  let number = 1
  while (taken.has(number)) number++
  return number
}

function Screen(props: { id: string; label: string; hidden: boolean; onForget: () => void }) {
  const { id, hidden } = props
  const element = useRef<HTMLDivElement>(null)
  const live = useRef<LiveTerminal | null>(null)
  const [state, setState] = useState<TerminalState>({ status: 'connecting' })

  useEffect(() => {
    if (element.current === null) return undefined
    const made = new LiveTerminal(id, element.current, setState)
    live.current = made
    return () => {
      live.current = null
      made.close()
    }
  }, [id])
  useEffect(() => {
    if (!hidden && !matchMedia('(pointer: coarse)').matches) live.current?.focus()
  }, [hidden])
  // Keys are the terminal's while it has the focus, but the one that leaves it.
  useEffect(() => {
    const { current } = element
    const keep = (event: KeyboardEvent) => {
      if (!(event.key === 'Escape' && event.shiftKey)) event.stopPropagation()
    }
    current?.addEventListener('keydown', keep)
    return () => current?.removeEventListener('keydown', keep)
  }, [])

  return (
    <section
      aria-label={props.label}
      data-testid="terminal"
      className={cn('flex min-h-0 flex-1 flex-col', hidden && 'hidden')}
    >
      <StateLine state={state} onHere={() => live.current?.connect()} onForget={props.onForget} />
      <div className="min-h-0 flex-1 py-2 pl-3">
        <div ref={element} className="size-full overflow-hidden font-mono" />
      </div>
      <Keys live={live} />
      <div className="flex shrink-0 flex-wrap items-center gap-x-2 gap-y-1 border-t border-line px-3 py-1.5">
        <p className="w-full text-xs text-faint">
          The agent can’t see what you type, and its rules don’t apply.
          <span className="pointer-coarse:hidden"> Shift+Esc leaves the terminal.</span>
        </p>
        <span className="flex-1" />
        <IconButton label="Copy selection" onClick={() => void copySelected(live.current)}>
          <Copy aria-hidden />
        </IconButton>
        <IconButton label="Paste" onClick={() => void pasteInto(live.current)}>
          <ClipboardPaste aria-hidden />
        </IconButton>
        <Button size="sm" onClick={() => showToAgent(live.current)}>
          <MessageSquareShare className="size-3.5" aria-hidden /> Show this to the agent
        </Button>
      </div>
    </section>
  )
}

/** The state, where it is not the usual one. */
function StateLine(props: { state: TerminalState; onHere: () => void; onForget: () => void }) {
  const { state } = props
  if (state.status === 'open') return null
  return (
    <div
      role="status"
      className="flex shrink-0 items-center gap-2 border-b border-line bg-panel px-5 py-2 text-sm text-muted"
    >
      {state.status === 'connecting' && (
        <>
          <Spinner /> Connecting to the terminal…
        </>
      )}
      {state.status === 'waiting' && (
        <>
          <Spinner /> Connection lost. The terminal keeps running. Reconnecting…
        </>
      )}
      {state.status === 'taken' && (
        <>
          <span className="flex-1">This terminal is open in another window.</span>
          <Button size="sm" onClick={props.onHere}>
            Open it here
          </Button>
        </>
      )}
      {state.status === 'ended' && (
        <>
          <span className="flex-1">{state.text}</span>
          <Button size="sm" onClick={props.onForget}>
            Close
          </Button>
        </>
      )}
    </div>
  )
}

/** Keys that a phone's keyboard does not have. */
const KEYS = [
  { label: 'Esc', name: 'Escape', text: '\u001b' },
  { label: 'Tab', name: 'Tab', text: '\t' },
  { label: '↑', name: 'Up', text: '\u001b[A' },
  { label: '↓', name: 'Down', text: '\u001b[B' },
  { label: '←', name: 'Left', text: '\u001b[D' },
  { label: '→', name: 'Right', text: '\u001b[C' },
  { label: '|', name: 'Pipe', text: '|' },
  { label: '/', name: 'Slash', text: '/' },
] as const

function Keys(props: { live: RefObject<LiveTerminal | null> }) {
  const { live } = props
  const look =
    'h-11 min-w-11 shrink-0 rounded-lg border border-line bg-raised px-2.5 font-mono text-sm text-ink active:bg-active'
  return (
    <div
      role="toolbar"
      aria-label="Keys"
      className="hidden shrink-0 gap-1 overflow-x-auto border-t border-line px-3 py-1.5 pointer-coarse:flex"
    >
      <button
        type="button"
        aria-label="Ctrl, with the next key"
        className={look}
        onClick={() => live.current?.holdCtrl()}
      >
        Ctrl
      </button>
      {KEYS.map(({ label, name, text }) => (
        <button
          key={name}
          type="button"
          aria-label={label.length > 1 ? undefined : name}
          className={look}
          onClick={() => {
            live.current?.type(text)
            live.current?.focus()
          }}
        >
          {label}
        </button>
      ))}
    </div>
  )
}

async function copySelected(live: LiveTerminal | null): Promise<void> {
  const text = live?.selection() ?? ''
  if (text === '') return showToast('Nothing selected.')
  try {
    await writeClipboard(text)
    showToast('Copied.')
  } catch (error) {
    showToast(`Couldn’t copy: ${messageOf(error)}.`)
  }
}

async function pasteInto(live: LiveTerminal | null): Promise<void> {
  try {
    live?.paste(await navigator.clipboard.readText())
    live?.focus()
  } catch {
    showToast('Your browser doesn’t allow reading the clipboard. Press Ctrl+V in the terminal.')
  }
}

function showToAgent(live: LiveTerminal | null): void {
  const text = live?.text() ?? ''
  if (text === '') return showToast('The terminal is empty.')
  handToComposer(codeBlock(text))
  showToast('Added to your message. Send it when you’re ready.')
}
