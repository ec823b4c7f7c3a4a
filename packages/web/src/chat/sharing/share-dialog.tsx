/** Sharing of a chat: people and teams, what each may do, and links to its current state. */
import { type ShareList, shareList } from '@sandlot/shared/chat/shares'
import type { Directory } from '@sandlot/shared/chat/shares-api'
import { Search, UsersRound } from 'lucide-react'
import { type KeyboardEvent, useId, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { cn } from '../../lib/cn.ts'
import { formatDate } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TitledDialog } from '../../ui/titled-dialog.tsx'
import { SnapshotLinks } from './snapshot-links.tsx'
import { MODE_EFFECTS } from '../../state/mode-effects.ts'
import { type Terms, TermsForm } from './terms-form.tsx'

type Share = ShareList['shares'][number]
type Found = Pick<Share, 'kind' | 'targetId'> & { name: string; about: string }

const NEW_TERMS: Terms = { access: 'watch', mode: 'manual', mayApprove: false, expiresAt: null }

export default function ShareDialog(props: { sessionId: string; onClose: () => void }) {
  return (
    <TitledDialog
      title="Share this chat"
      size="max-h-[calc(100dvh-2rem)] w-[34rem]"
      open
      onOpenChange={(open) => !open && props.onClose()}
    >
      <div className="flex min-h-0 flex-col gap-6 overflow-y-auto px-5 pt-4 pb-5">
        <Shares sessionId={props.sessionId} />
        <SnapshotLinks sessionId={props.sessionId} />
      </div>
    </TitledDialog>
  )
}

function Shares({ sessionId }: { sessionId: string }) {
  const [chosen, setChosen] = useState<Found | null>(null)
  const {
    data: shares,
    problem,
    busy,
    change,
  } = useResource<readonly Share[]>(
    sessionId,
    async (signal) => shareList.parse(await call('listShares', { params: { id: sessionId }, signal })).shares,
  )
  const put = ({ kind, targetId }: Pick<Share, 'kind' | 'targetId'>, terms: Terms) =>
    void change(async () => {
      await call('putShare', { params: { id: sessionId }, body: { kind, targetId, ...terms } })
      setChosen(null)
    })
  return (
    <section aria-label="People and teams" className="flex flex-col gap-4">
      <p className="text-sm text-muted">
        They see messages and output live, but not your files, terminals or secrets. Participants’ messages
        run in your sandbox, under your rules, so the agent can read files there for them.
      </p>
      {problem !== null && <Alert>{problem}</Alert>}
      {chosen === null ? (
        <Finder onChoose={setChosen} />
      ) : (
        <div className="flex flex-col gap-3 rounded-xl border border-line p-3.5">
          <Target name={chosen.name} kind={chosen.kind} id={chosen.targetId} detail={chosen.about} />
          <TermsForm
            terms={NEW_TERMS}
            busy={busy}
            action="Share"
            onSave={(terms) => put(chosen, terms)}
            onCancel={() => setChosen(null)}
          />
        </div>
      )}
      {shares === null && problem === null && (
        <p role="status" className="flex items-center gap-2 text-sm text-muted">
          <Spinner /> Loading…
        </p>
      )}
      {shares?.length === 0 && chosen === null && (
        <p className="text-sm text-faint">Only you see this chat.</p>
      )}
      {shares !== null && shares.length > 0 && (
        <SharedWith
          sessionId={sessionId}
          shares={shares}
          busy={busy}
          onSave={put}
          onRevoke={({ id }) =>
            void change(async () => {
              await call('removeShare', { params: { id: sessionId, shareId: id } })
              setChosen(null)
            })
          }
        />
      )}
    </section>
  )
}

function SharedWith(props: {
  sessionId: string
  shares: readonly Share[]
  busy: boolean
  onSave: (share: Share, terms: Terms) => void
  onRevoke: (share: Share) => void
}) {
  const { sessionId, shares, busy } = props
  return (
    <>
      <ul aria-label="People with access" className="divide-y divide-line rounded-xl border border-line">
        {shares.map((share) => (
          <ShareLine
            key={share.id}
            share={share}
            busy={busy}
            onSave={(terms) => props.onSave(share, terms)}
            onRevoke={() => props.onRevoke(share)}
          />
        ))}
      </ul>
      <div className="flex items-center gap-2">
        <p className="min-w-0 flex-1 text-xs text-muted">Only the people above can open this link.</p>
        <CopyButton text={`${location.origin}/s/${sessionId}`} what="link to this chat" />
      </div>
    </>
  )
}

function Target(props: { name: string; kind: Share['kind']; id: string; detail: string }) {
  const { name, kind, id, detail } = props
  return (
    <div className="flex min-w-0 flex-1 items-center gap-2.5">
      {kind === 'person' ? (
        <PersonMark id={id} name={name} className="size-7" />
      ) : (
        <span className="flex size-7 shrink-0 items-center justify-center rounded-full bg-active text-muted">
          <UsersRound className="size-4" aria-hidden />
        </span>
      )}
      <span className="min-w-0">
        <span className="block truncate text-sm font-medium">
          <Revealed text={name} />
        </span>
        <span className="block text-xs text-muted [overflow-wrap:anywhere]">{detail}</span>
      </span>
    </div>
  )
}

function ShareLine(props: {
  share: Share
  busy: boolean
  onSave: (terms: Terms) => void
  onRevoke: () => void
}) {
  const { share, busy } = props
  const [changing, setChanging] = useState(false)
  const name = share.name ?? (share.kind === 'team' ? 'Removed team' : 'Removed person')
  return (
    <li className="flex flex-col gap-3 py-2.5 pr-2 pl-3">
      <div className="flex flex-wrap items-center justify-end gap-2">
        <Target name={name} kind={share.kind} id={share.targetId} detail={termsWords(share)} />
        <div className="flex gap-1">
          <Button
            size="sm"
            variant="ghost"
            aria-expanded={changing}
            aria-label={`Change access of ${name}`}
            onClick={() => setChanging(!changing)}
          >
            Change
          </Button>
          <Button
            size="sm"
            variant="danger"
            disabled={busy}
            aria-label={`Revoke for ${name}`}
            onClick={props.onRevoke}
          >
            Revoke
          </Button>
        </div>
      </div>
      {changing && (
        <TermsForm
          terms={share}
          busy={busy}
          action="Save"
          onSave={(terms) => {
            setChanging(false)
            props.onSave(terms)
          }}
          onCancel={() => setChanging(false)}
        />
      )}
    </li>
  )
}

function termsWords({ access, mode, mayApprove, expiresAt }: Terms): string {
  const words = access === 'watch' ? ['Watches'] : ['Takes part', MODE_EFFECTS[mode]]
  if (mayApprove) words.push('may approve')
  if (expiresAt !== null) words.push(expiresAt <= Date.now() ? 'has ended' : `until ${formatDate(expiresAt)}`)
  return words.join(' · ')
}

/** In milliseconds: a person who types is not asked about every letter. */
const PAUSE_MS = 150

function Finder(props: { onChoose: (found: Found) => void }) {
  const [query, setQuery] = useState('')
  const { found, problem, at, setAt } = useDirectory(query.trim())
  const listId = useId()
  const shown = found ?? []
  const chosen = shown[at]
  const onKeyDown = (event: KeyboardEvent) => {
    if (chosen === undefined) return
    if (event.key === 'ArrowDown') setAt((at + 1) % shown.length)
    else if (event.key === 'ArrowUp') setAt((at + shown.length - 1) % shown.length)
    else if (event.key === 'Enter') props.onChoose(chosen)
    else return
    event.preventDefault()
  }
  return (
    <div className="flex flex-col gap-1.5">
      <div className="relative">
        <Search
          className="pointer-events-none absolute top-3 left-3 size-4 text-faint pointer-coarse:top-3.5"
          aria-hidden
        />
        <input
          className={cn(INPUT, 'pl-9')}
          dir="auto"
          role="combobox"
          aria-label="Find people and teams"
          aria-expanded={shown.length > 0}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={chosen === undefined ? undefined : `${listId}-${chosen.targetId}`}
          placeholder="Find people and teams"
          autoComplete="off"
          maxLength={100}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          onKeyDown={onKeyDown}
        />
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      <p role="status" className="px-3 text-sm text-faint empty:hidden">
        {found?.length === 0 && 'No matches.'}
      </p>
      <FoundList id={listId} found={shown} at={at} onChoose={props.onChoose} />
    </div>
  )
}

function FoundList(props: {
  id: string
  found: readonly Found[]
  at: number
  onChoose: (found: Found) => void
}) {
  const { id, found, at } = props
  return (
    <ul
      id={id}
      role="listbox"
      aria-label="People and teams"
      hidden={found.length === 0}
      className="max-h-56 overflow-y-auto rounded-xl border border-line p-1"
    >
      {found.map((one, index) => (
        <li
          key={one.targetId}
          id={`${id}-${one.targetId}`}
          role="option"
          aria-selected={index === at}
          onClick={() => props.onChoose(one)}
          className={cn(
            'cursor-pointer rounded-lg px-2 py-1.5 hover:bg-hover pointer-coarse:min-h-11',
            index === at && 'bg-hover',
          )}
        >
          <Target name={one.name} kind={one.kind} id={one.targetId} detail={one.about} />
        </li>
      ))}
    </ul>
  )
}

/** People and teams by name or address. `at`: the row in focus. */
function useDirectory(wanted: string) {
  const [at, setAt] = useState(0)
  const { data: found, problem } = useResource(
    wanted === '' ? null : wanted,
    async (signal) => {
      const directory = await call('findPeople', { query: { query: wanted }, signal })
      setAt(0)
      return foundIn(directory)
    },
    { keep: true, pauseMs: PAUSE_MS },
  )
  return { found, problem, at, setAt }
}

function foundIn({ people, teams }: Directory): Found[] {
  return [
    ...teams.map(({ id, name }) => ({ kind: 'team' as const, targetId: id, name, about: 'Team' })),
    ...people.map(({ id, name, email, guest }) => ({
      kind: 'person' as const,
      targetId: id,
      name,
      about: [guest === true ? 'Guest' : 'Person', ...(email === undefined ? [] : [email])].join(' · '),
    })),
  ]
}
