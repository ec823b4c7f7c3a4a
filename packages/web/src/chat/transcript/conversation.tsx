/** The messages of an open chat, in a region that scrolls. Loaded after the composer. */
import { branchShown } from '@sandlot/shared/transcript/transcript'
import { type ComponentProps, type Ref, useMemo } from 'react'
import { useChatState } from '../../state/chat-context.ts'
import { EMPTY_VIEW } from '../../state/chat-state.ts'
import { Typing } from '../sharing/people-here.tsx'
import { BranchesProvider } from './branches.ts'
import { Scroller, type ScrollHandle } from './scroller.tsx'
import { TranscriptView } from './transcript-view.tsx'

type LiveProps = Omit<ComponentProps<typeof TranscriptView>, 'view' | 'transcript'> & {
  /** The branch. */
  path: readonly string[]
}

export default function Conversation({
  scroller,
  people,
  branches,
  ...props
}: LiveProps & {
  scroller: Ref<ScrollHandle>
  people: ComponentProps<typeof Typing>['people']
  branches: ComponentProps<typeof BranchesProvider>['value']
}) {
  return (
    <Scroller ref={scroller} below={<Typing people={people} />}>
      <BranchesProvider value={branches}>
        <LiveTranscript {...props} />
      </BranchesProvider>
    </Scroller>
  )
}

/** The part of the page that is drawn again with each piece of text. */
function LiveTranscript({ path, ...props }: LiveProps) {
  const { sessionId } = props
  const view =
    useChatState((state) => (sessionId === null ? undefined : state.views[sessionId])) ?? EMPTY_VIEW
  const shown = useMemo(() => branchShown(view.transcript, path), [view.transcript, path])
  return <TranscriptView {...props} view={view} transcript={shown} />
}
