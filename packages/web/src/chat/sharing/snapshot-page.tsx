/** A chat as it was when its owner made this link, read only. */
import { metaOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { type SnapshotView, snapshotView } from '@sandlot/shared/chat/shares-api'
import { shownBranch } from '@sandlot/shared/transcript/branches'
import { branchShown, emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { Link2Off } from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { formatDate } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { EMPTY_VIEW } from '../../state/chat-state.ts'
import { Button } from '../../ui/button.tsx'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { useChat } from '../../state/chat-context.ts'
import { BranchesProvider } from '../transcript/branches.ts'
import { TranscriptView } from '../transcript/transcript-view.tsx'
import { type Reading, ReadingProvider } from '../../state/reading.ts'

/** All pages of it as one. */
async function fetchSnapshot(id: string, signal: AbortSignal): Promise<SnapshotView> {
  const page = async (after: number) =>
    snapshotView.parse(await call('getSnapshot', { params: { id }, query: { after }, signal }))
  let view = await page(0)
  while (view.next !== null) {
    const more = await page(view.next)
    view = { ...more, events: [...view.events, ...more.events] }
  }
  return view
}

export default function SnapshotPage({ id }: { id: string }) {
  const { chat } = useChat()
  const { data: view, problem } = useResource(id, (signal) => fetchSnapshot(id, signal))
  useEffect(() => chat.show(null), [chat, id])
  if (problem !== null) return <Unavailable problem={problem} />
  if (view === null)
    return (
      <div role="status" className="flex flex-1 items-center justify-center gap-2.5 text-sm text-muted">
        <Spinner /> Loading…
      </div>
    )
  return <Snapshot view={view} />
}

function Snapshot({ view: { title, owner, events, outputs, createdAt, expiresAt } }: { view: SnapshotView }) {
  const { shown, branches } = useSnapshotBranches(events)
  const reading = useMemo<Reading>(
    () => ({
      owner,
      access: 'watch',
      mayApprove: false,
      approvers: [],
      moreApprovers: 0,
      modeCeiling: null,
      together: true,
      people: [owner],
      snapshot: true,
    }),
    [owner],
  )
  const name = title ?? 'A chat'
  return (
    <ReadingProvider value={reading}>
      <div
        className="min-h-0 flex-1 overflow-y-auto focus-visible:-outline-offset-2"
        data-scrolls
        tabIndex={0}
        role="group"
        aria-label="Snapshot"
      >
        <div className="mx-auto w-full max-w-[48rem] px-4 pb-16 sm:px-6">
          <header className="flex items-start gap-3 border-b border-line pt-2 pb-4">
            <PersonMark {...owner} className="mt-0.5 size-8 text-xs" />
            <div className="min-w-0">
              <h1 dir="auto" className="text-lg font-semibold [overflow-wrap:anywhere]">
                <Revealed text={name} />
              </h1>
              <p className="text-sm text-muted">
                A chat of <Revealed text={owner.name} />, as it was on {formatDate(createdAt)}
                {outputs ? '' : ', without command output'}.
                {expiresAt !== null && ` The link expires ${formatDate(expiresAt)}.`}
              </p>
            </div>
          </header>
          <BranchesProvider value={branches}>
            <TranscriptView
              sessionId={null}
              view={EMPTY_VIEW}
              transcript={shown}
              outbox={[]}
              online
              stopping={false}
              marked={null}
            />
          </BranchesProvider>
        </div>
      </div>
    </ReadingProvider>
  )
}

function useSnapshotBranches(events: readonly SessionEvent[]) {
  const transcript = useMemo(() => {
    const whole = events.map(numbered).reduce(foldTranscript, emptyTranscript())
    return { ...whole, prompt: null }
  }, [events])
  const [chosen, choose] = useState<string | null>(null)
  const { prompts } = transcript
  const shown = useMemo(
    () => branchShown(transcript, shownBranch(prompts, chosen)),
    [transcript, prompts, chosen],
  )
  const branches = useMemo(() => ({ prompts, choose, resend: undefined }), [prompts])
  return { shown, branches }
}

/** A snapshot leaves events out, and a transcript takes none behind a hole. */
function numbered(event: SessionEvent, at: number): SessionEvent {
  return { ...event, _meta: { sandlot: { ...metaOf(event), seq: at + 1 } } }
}

function Unavailable({ problem }: { problem: string }) {
  const [, navigate] = useLocation()
  return (
    <div className="flex flex-1 flex-col items-center justify-center gap-3 px-6 pb-24 text-center">
      <Link2Off className="size-7 text-faint" aria-hidden />
      <h1 className="text-lg font-semibold">Snapshot unavailable</h1>
      <p role="alert" className="max-w-sm text-sm text-muted">
        {problem}
      </p>
      <Button className="mt-2" onClick={() => navigate('/')}>
        Go to your chats
      </Button>
    </div>
  )
}
