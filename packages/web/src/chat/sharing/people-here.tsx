/** Other people in the open chat, and who is typing. */
import type { Present } from '@sandlot/shared/transcript/transcript'
import { Share2, UsersRound } from 'lucide-react'
import { useRef } from 'react'
import { Button } from '../../ui/button.tsx'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { useChat, useChatState, useSettledView } from '../../state/chat-context.ts'
import { type Reading, useReadingOf } from '../../state/reading.ts'
import { Popover } from '../../ui/on-demand.tsx'

const MOST_MARKS = 3

/** Next to the title: the other members of a shared chat, or the button to share it. */
export function PeopleHere(props: { onShare: () => void }) {
  const { me } = useChat()
  const sessionId = useChatState((state) => state.activeId)
  const view = useSettledView(sessionId)
  const reading = useReadingOf(sessionId)
  // Inside the page’s landmark, not at the end of the body.
  const host = useRef<HTMLDivElement>(null)
  if (view.missing) return null
  if (!reading.together) {
    if (view.transcript.seq === 0) return null
    return (
      <Button variant="ghost" className="h-8 px-2.5 max-md:hidden" onClick={props.onShare}>
        <Share2 className="size-4" aria-hidden /> Share
      </Button>
    )
  }
  const { people } = view.transcript
  const others = people.filter(({ id }) => id !== me.id)
  return (
    <div ref={host}>
      <Popover.Root>
        <MarksTrigger others={others} />
        <Popover.Portal container={host}>
          <Popover.Positioner
            positionMethod="fixed"
            side="bottom"
            align="end"
            sideOffset={4}
            className="z-50"
          >
            <Popover.Popup className="popup w-72 max-w-[calc(100vw-1rem)] rounded-xl border border-line bg-raised p-4 shadow-3 outline-none">
              <Popover.Title className="text-sm font-semibold">
                {others.length === 0 ? 'Nobody else is here now' : 'Here now'}
              </Popover.Title>
              {others.length > 0 && (
                <ul className="mt-2 flex max-h-60 flex-col gap-1.5 overflow-y-auto">
                  {others.map((person) => (
                    <Person key={person.id} person={person} owner={reading.owner?.id === person.id} />
                  ))}
                </ul>
              )}
              <Popover.Description className="mt-2.5 text-xs text-muted">
                <WhatItGives reading={reading} />
              </Popover.Description>
              {reading.access === 'own' && (
                <Popover.Close render={<Button size="sm" className="mt-3 w-full" />} onClick={props.onShare}>
                  People with access…
                </Popover.Close>
              )}
            </Popover.Popup>
          </Popover.Positioner>
        </Popover.Portal>
      </Popover.Root>
    </div>
  )
}

function MarksTrigger({ others }: { others: readonly Present[] }) {
  const names = others.map(({ name }) => name).join(', ')
  return (
    <Popover.Trigger
      data-testid="people-here"
      className="inline-flex h-8 items-center gap-1.5 rounded-lg px-1.5 text-xs text-muted hover:bg-hover data-popup-open:bg-hover max-md:h-11"
    >
      {others.length === 0 ? (
        <>
          <UsersRound className="size-4" aria-hidden />
          <span className="sr-only">Shared chat; only you are here</span>
        </>
      ) : (
        <span className="flex -space-x-1">
          <span className="sr-only">Also here: {names}</span>
          {others.slice(0, MOST_MARKS).map((person) => (
            <PersonMark key={person.id} {...person} className="ring-2 ring-canvas" />
          ))}
        </span>
      )}
      {others.length > MOST_MARKS && (
        <span className="tabular-nums" aria-hidden>
          +{others.length - MOST_MARKS}
        </span>
      )}
    </Popover.Trigger>
  )
}

function Person(props: { person: Present; owner: boolean }) {
  const { person, owner } = props
  return (
    <li className="flex min-w-0 items-center gap-2.5 text-sm">
      <PersonMark {...person} />
      <span className="min-w-0 flex-1 truncate">
        <Revealed text={person.name} />
      </span>
      <span className="shrink-0 text-xs text-faint">
        {person.typing === true ? 'writing…' : owner ? 'owner' : ''}
      </span>
    </li>
  )
}

function WhatItGives({ reading }: { reading: Reading }) {
  const { owner, access, mayApprove } = reading
  if (owner === null) return 'The agent works in your sandbox, under your rules.'
  const may = access === 'watch' ? 'You’re watching' : 'You’re taking part'
  return (
    <>
      {may}
      {mayApprove && ' and may answer approvals'}. The chat and its sandbox are <Revealed text={owner.name} />
      ’s.
    </>
  )
}

/** Over the end of the conversation, so that nothing moves when it comes and goes. */
export function Typing(props: { people: readonly Present[] }) {
  const { me } = useChat()
  const names = props.people
    .filter(({ id, typing }) => id !== me.id && typing === true)
    .map(({ name }) => name)
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-0 mx-auto w-full max-w-[48rem] px-5 sm:px-8">
      <p role="status" data-testid="typing" className="h-5 truncate text-xs leading-5 text-muted">
        <Revealed text={typingWords(names)} />
      </p>
    </div>
  )
}

function typingWords(names: readonly string[]): string {
  const [one, two] = names
  if (one === undefined) return ''
  if (two === undefined) return `${one} is writing…`
  return names.length === 2 ? `${one} and ${two} are writing…` : `${names.length} people are writing…`
}
