/** The files that changed in the chat on the screen, prompt by prompt, the latest first. */
import { diffsId, type PromptDiffs, promptDiffs } from '@sandlot/shared/chat/file-changes'
import type { ChangesEntry, Entry } from '@sandlot/shared/transcript/entries'
import { ChevronRight, FileDiff } from 'lucide-react'
import { useEffect, useId, useMemo, useRef, useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { useChatState } from '../state/chat-context.ts'
import { useReadingOf } from '../state/reading.ts'
import { useWorkspace } from '../state/use-workspace.ts'
import { DiffView } from '../preview/diff-view.tsx'
import { cn } from '../lib/cn.ts'
import { call } from '../net/call.ts'
import { EMPTY_VIEW } from '../state/chat-state.ts'
import { Alert } from '../ui/alert.tsx'
import { EmptyPlace } from '../ui/empty-place.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { changedWords, linesOf } from '@sandlot/shared/transcript/change-words'
import { FileLine, LineCounts, MoreFiles } from '../changes/file-line.tsx'
import { useShownPrompt } from '../changes/shown-prompt.ts'

export default function ChangesPanel() {
  const sessionId = useChatState((state) => state.activeId)
  const { transcript, sync } =
    useChatState((state) => (sessionId === null ? undefined : state.views[sessionId])) ?? EMPTY_VIEW
  const { access } = useReadingOf(sessionId)
  const prompts = useMemo(() => promptsOf(transcript.entries), [transcript.entries])
  if (sessionId !== null && prompts.length === 0 && sync === 'loading')
    return (
      <p role="status" className="flex items-center gap-2 px-5 py-4 text-sm text-muted">
        <Spinner /> Loading…
      </p>
    )
  if (sessionId === null || prompts.length === 0)
    return (
      <EmptyPlace icon={FileDiff} title="No files changed in this chat yet">
        <p>Files the agent creates, changes or removes appear here.</p>
      </EmptyPlace>
    )
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-6 overflow-y-auto px-4 py-4">
      {prompts.map(({ entry, asked }, at) => (
        <Prompt
          key={`${sessionId} ${entry.id}`}
          sessionId={sessionId}
          entry={entry}
          asked={asked}
          own={access === 'own'}
          isLatest={at === 0}
        />
      ))}
    </div>
  )
}

interface PromptOfPanel {
  entry: ChangesEntry
  /** The person's message. */
  asked: string
}

function promptsOf(entries: readonly Entry[]): PromptOfPanel[] {
  const asked = new Map<string, string>()
  for (const entry of entries)
    if (entry.type === 'message' && entry.role === 'user' && !asked.has(entry.promptId ?? ''))
      asked.set(entry.promptId ?? '', entry.text)
  return entries
    .flatMap((entry) => (entry.type === 'changes' ? [{ entry, asked: asked.get(entry.id) ?? '' }] : []))
    .toReversed()
}

function Prompt(props: {
  sessionId: string
  entry: ChangesEntry
  asked: string
  own: boolean
  isLatest: boolean
}) {
  const { sessionId, entry, own } = props
  const [shown, setShown] = useState<ReadonlySet<string>>(() => {
    const [only, ...others] = entry.files
    const isOnlyOne = only?.diff === true && others.length === 0 && entry.more === 0
    return new Set(own && props.isLatest && isOnlyOne ? [only.path] : [])
  })
  const heading = useId()
  const section = useRef<HTMLElement>(null)
  const { promptId } = useShownPrompt()
  useEffect(() => {
    if (promptId === entry.id) section.current?.scrollIntoView({ block: 'start' })
  }, [promptId, entry.id])
  const diffs = useDiffs(sessionId, entry.id, shown.size > 0)
  const toggle = (path: string) => {
    const next = new Set(shown)
    if (!next.delete(path)) next.add(path)
    setShown(next)
  }
  return (
    <section ref={section} aria-labelledby={heading} data-testid="prompt-changes" className="scroll-mt-4">
      <h2 id={heading} className="truncate text-sm font-medium" title={props.asked}>
        <Revealed text={props.asked.split('\n', 1)[0] ?? ''} />
      </h2>
      <p className="mt-0.5 mb-2 flex items-center gap-2 text-sm text-muted">
        {changedWords(entry)} <LineCounts lines={linesOf(entry.files)} />
      </p>
      <ul className="flex flex-col">
        {entry.files.map((file) => (
          <ChangedFile
            key={file.path}
            file={file}
            own={own}
            isShown={shown.has(file.path)}
            diffs={diffs}
            onToggle={() => toggle(file.path)}
          />
        ))}
        <MoreFiles more={entry.more} />
      </ul>
    </section>
  )
}

function ChangedFile(props: {
  file: ChangesEntry['files'][number]
  own: boolean
  isShown: boolean
  diffs: KnownDiffs
  onToggle: () => void
}) {
  const { file, own, isShown, diffs } = props
  const { openFile } = useWorkspace()
  return (
    <li className="border-t border-line py-0.5">
      <div className="flex items-center gap-1">
        {own && file.diff === true ? (
          <button
            type="button"
            aria-expanded={isShown}
            aria-label={`Diff of ${file.path}`}
            onClick={props.onToggle}
            className="inline-flex size-7 shrink-0 items-center justify-center rounded-md text-faint hover:bg-hover hover:text-ink pointer-coarse:size-11"
          >
            <ChevronRight
              className={cn('size-4 transition-transform duration-100', isShown && 'rotate-90')}
              aria-hidden
            />
          </button>
        ) : (
          <span className="size-7 shrink-0 pointer-coarse:size-11" />
        )}
        <FileLine
          file={file}
          {...(own && file.kind !== 'removed' ? { onOpen: () => openFile(file.path) } : {})}
        />
      </div>
      {isShown && <ShownDiff path={file.path} diffs={diffs} />}
    </li>
  )
}

interface KnownDiffs {
  /** Null until they are there. */
  data: PromptDiffs['diffs'] | null
  problem: string | null
}

function ShownDiff(props: { path: string; diffs: KnownDiffs }) {
  const { path, diffs } = props
  if (diffs.data === null && diffs.problem === null)
    return (
      <p role="status" className="flex items-center gap-2 py-2 pl-8 text-sm text-muted">
        <Spinner /> Loading the diff…
      </p>
    )
  const diff = diffs.data?.find((one) => one.path === path)
  if (diff === undefined) return <Alert>{diffs.problem ?? 'The diff is no longer available.'}</Alert>
  return (
    <div className="my-1.5">
      <DiffView {...diff} file={null} />
    </div>
  )
}

/** Own chats only. */
function useDiffs(sessionId: string, promptId: string, wanted: boolean): KnownDiffs {
  return useResource(wanted ? `${sessionId} ${promptId}` : null, async (signal) => {
    const params = { id: sessionId, callId: diffsId(promptId) }
    return promptDiffs.parse(await call('getOutput', { params, signal })).diffs
  })
}
