/** One person, for administrators: role, teams, what holds and why, their way in, their end. */
import { type Account, account } from '@sandlot/shared/account/api'
import type { Role } from '@sandlot/shared/account/role'
import type { Team } from '@sandlot/shared/account/teams-api'
import { UserX, X } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { useChat } from '../../state/chat-context.ts'
import { call } from '../../net/call.ts'
import { currentOf } from '../../net/http.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { cn } from '../../lib/cn.ts'
import { ROLE_WORDS } from '../account.tsx'
import { Part } from '../part.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'
import { AgentSettingsForm, Waits } from './agent-settings-form.tsx'
import { RemovePersonForm } from './remove-person-form.tsx'
import { effectiveRows, sourceWords } from './setting-words.ts'

const ROLE_MEANS: Record<Role, string> = {
  admin: 'Full access, including other people.',
  member: 'Own chats and sandbox.',
  guest: 'Joins shared chats; no chats or sandbox of their own.',
}

/** `person`: undefined where there is none. `onChanged`: lists are to be fetched again. */
export function PersonPage(props: {
  person: Account | undefined
  people: readonly Account[]
  teams: readonly Team[]
  onChanged: () => Promise<void>
}) {
  const { person, teams, onChanged } = props
  const { me } = useChat()
  // Counts changes: the effective settings are fetched again.
  const [changes, setChanges] = useState(0)
  const changed = async () => {
    await onChanged()
    setChanges((count) => count + 1)
  }
  if (person === undefined)
    return (
      <>
        <h1 className="text-xl font-semibold tracking-tight">Not here</h1>
        <p className="text-sm text-muted">This person doesn’t exist, or was removed.</p>
      </>
    )
  return (
    <div className="flex flex-col gap-10">
      <div className="flex items-center gap-3">
        <span
          className="flex size-11 shrink-0 items-center justify-center rounded-full bg-accent-wash text-base font-semibold text-accent"
          aria-hidden
        >
          {person.name.slice(0, 1).toUpperCase()}
        </span>
        <div className="min-w-0">
          <h1 className="truncate text-xl font-semibold tracking-tight">{person.name}</h1>
          <p className="truncate text-sm text-muted">
            {person.email}
            {person.id === me.id && ' · you'}
          </p>
        </div>
      </div>
      <RolePart person={person} onChanged={changed} />
      <TeamsPart person={person} teams={teams} onChanged={changed} />
      <Part
        title={`Why may ${person.name} use this?`}
        text="Personal settings win; then the most generous of their teams; then the deployment default."
      >
        <Effective key={changes} userId={person.id} />
      </Part>
      <Part title="Personal settings" text={`Overrides team settings. Unchecked settings are inherited.`}>
        <AgentSettingsForm
          subject={{ kind: 'person', id: person.id }}
          onSaved={() => setChanges(changes + 1)}
        />
      </Part>
      {person.id !== me.id && <SignInPart person={person} />}
      {person.id !== me.id && <RemovePart person={person} people={props.people} onChanged={onChanged} />}
    </div>
  )
}

function RolePart(props: { person: Account; onChanged: () => Promise<void> }) {
  const { id, name, role } = props.person
  const [wanted, setWanted] = useState<Role | null>(null)
  const [theirs, setTheirs] = useState<Role | null>(null)
  const { busy, problem, attempt } = useAttempt()
  const save = (next: Role, was: Role) =>
    attempt(async () => {
      setTheirs(null)
      try {
        await call('changeUser', { params: { id }, body: { role: next, was: { role: was } } })
        setWanted(null)
      } catch (error) {
        const current = currentOf(error, account)
        if (current === undefined) throw error
        setTheirs(current.role)
        return
      }
      await props.onChanged()
    })
  const shown = wanted ?? role
  return (
    <Part title="Role">
      {problem !== null && <Alert>{problem}</Alert>}
      <div className="flex flex-wrap items-center gap-2">
        <RoleSelect name={name} role={shown} busy={busy} onChange={setWanted} />
        {shown !== role && (
          <>
            <Button variant="primary" disabled={busy} onClick={() => void save(shown, role)}>
              {busy && <Spinner />} Save
            </Button>
            <Button disabled={busy} onClick={() => setWanted(null)}>
              Discard
            </Button>
          </>
        )}
      </div>
      <p className="text-xs text-muted">{ROLE_MEANS[shown]}</p>
      {theirs !== null && (
        <RoleConflict
          theirs={theirs}
          wanted={shown}
          onKeep={() => {
            setTheirs(null)
            setWanted(null)
            void props.onChanged()
          }}
          onOverwrite={() => void save(shown, theirs)}
        />
      )}
    </Part>
  )
}

function RoleSelect(props: { name: string; role: Role; busy: boolean; onChange: (role: Role) => void }) {
  return (
    <select
      aria-label={`Role of ${props.name}`}
      className={cn(INPUT, 'w-48')}
      value={props.role}
      disabled={props.busy}
      onChange={({ target }) => props.onChange(target.value as Role)}
    >
      {Object.entries(ROLE_WORDS).map(([value, words]) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </select>
  )
}

function RoleConflict(props: { theirs: Role; wanted: Role; onKeep: () => void; onOverwrite: () => void }) {
  return (
    <div role="alert" className="rounded-lg border border-waiting-line bg-waiting-wash p-3 text-sm">
      <p className="font-medium">
        Another administrator made them {ROLE_WORDS[props.theirs].toLowerCase()} meanwhile.
      </p>
      <div className="mt-2 flex flex-wrap gap-2">
        <Button size="sm" onClick={props.onKeep}>
          Keep it
        </Button>
        <Button size="sm" onClick={props.onOverwrite}>
          Make them {ROLE_WORDS[props.wanted].toLowerCase()} all the same
        </Button>
      </div>
    </div>
  )
}

function TeamsPart(props: { person: Account; teams: readonly Team[]; onChanged: () => Promise<void> }) {
  const { id, name } = props.person
  const { busy, problem, attempt } = useAttempt()
  const set = (team: string, member: boolean) =>
    void attempt(async () => {
      await call('setTeamMember', { params: { id: team, userId: id }, body: { member } })
      await props.onChanged()
    })
  const sourcesIn = (team: Team) =>
    team.members.filter(({ userId }) => userId === id).map(({ source }) => source)
  const theirs = props.teams.filter((team) => sourcesIn(team).length > 0)
  const others = props.teams.filter((team) => !sourcesIn(team).includes('admin'))
  return (
    <Part title="Teams">
      {problem !== null && <Alert>{problem}</Alert>}
      {theirs.length === 0 && <p className="text-sm text-muted">In no team.</p>}
      {theirs.length > 0 && (
        <ul aria-label={`Teams of ${name}`} className="flex flex-wrap gap-2">
          {theirs.map((team) => (
            <TeamChip
              key={team.id}
              team={team}
              person={name}
              sources={sourcesIn(team)}
              busy={busy}
              onRemove={() => set(team.id, false)}
            />
          ))}
        </ul>
      )}
      {others.length > 0 && (
        <select
          aria-label={`Add ${name} to a team`}
          className={cn(INPUT, 'w-56')}
          value=""
          disabled={busy}
          onChange={({ target }) => target.value !== '' && set(target.value, true)}
        >
          <option value="">Add to a team…</option>
          {others.map((team) => (
            <option key={team.id} value={team.id}>
              {team.name}
            </option>
          ))}
        </select>
      )}
    </Part>
  )
}

function TeamChip(props: {
  team: Team
  person: string
  sources: readonly Team['members'][number]['source'][]
  busy: boolean
  onRemove: () => void
}) {
  const { team, sources } = props
  return (
    <li className="flex h-8 items-center gap-1 rounded-full border border-line bg-sunken pr-1 pl-3 text-sm pointer-coarse:h-11">
      {team.name}
      {sources.includes('groups') && (
        <span className="pr-2 text-xs text-muted">by their provider’s groups</span>
      )}
      {sources.includes('admin') && (
        <button
          type="button"
          aria-label={`Take ${props.person} out of ${team.name}`}
          disabled={props.busy}
          className="flex size-6 items-center justify-center rounded-full text-faint hover:bg-hover hover:text-ink pointer-coarse:size-11"
          onClick={props.onRemove}
        >
          <X className="size-3.5" aria-hidden />
        </button>
      )}
    </li>
  )
}

function Effective(props: { userId: string }) {
  const { userId } = props
  const { data: effective, problem } = useResource(userId, (signal) =>
    call('getUserEffective', { params: { id: userId }, signal }),
  )
  if (problem !== null) return <Alert>{problem}</Alert>
  // The height of the later table, so that nothing below moves.
  if (effective === null) return <Waits className="h-150" />
  return (
    <table aria-label="Effective settings" className="w-full table-fixed text-left text-sm">
      <thead>
        <tr className="border-b border-line text-xs text-muted">
          <th scope="col" className="w-[34%] py-2 pr-3 font-medium">
            Setting
          </th>
          <th scope="col" className="py-2 pr-3 font-medium">
            Holds
          </th>
          <th scope="col" className="w-[28%] py-2 font-medium">
            From
          </th>
        </tr>
      </thead>
      <tbody className="divide-y divide-line">
        {effectiveRows(effective).map(({ name, value, from }, index) => (
          // Instructions come several times under one name.
          // oxlint-disable-next-line react/no-array-index-key
          <tr key={`${name} ${index}`} className="align-top">
            <th scope="row" className="py-1.5 pr-3 font-normal text-muted [overflow-wrap:anywhere]">
              {name}
            </th>
            <td className="py-1.5 pr-3">
              <span className="line-clamp-4 [overflow-wrap:anywhere] whitespace-pre-line">{value}</span>
            </td>
            <td
              className={cn(
                'py-1.5 text-xs leading-5 [overflow-wrap:anywhere]',
                from.kind === 'deployment' ? 'text-faint' : 'font-medium text-ink',
              )}
            >
              {sourceWords(from)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function SignInPart(props: { person: Account }) {
  const { id, name } = props.person
  const [asking, setAsking] = useState<'password' | 'second factor' | null>(null)
  const [fresh, setFresh] = useState<string | null>(null)
  const [removed, setRemoved] = useState(false)
  const { busy, problem, attempt } = useAttempt()
  const act = () =>
    attempt(async () => {
      if (asking === 'password') setFresh((await call('resetUserPassword', { params: { id } })).password)
      else {
        await call('removeSecondFactor', { params: { id } })
        setRemoved(true)
      }
      setAsking(null)
    })
  return (
    <Part title="Sign-in" text={`If ${name} is locked out.`}>
      {problem !== null && <Alert>{problem}</Alert>}
      {asking === null ? (
        <div className="flex flex-wrap gap-2">
          <Button size="sm" onClick={() => setAsking('password')}>
            Reset password
          </Button>
          <Button size="sm" onClick={() => setAsking('second factor')}>
            Remove two-step sign-in
          </Button>
        </div>
      ) : (
        <div
          role="group"
          aria-label="Are you sure?"
          className="flex flex-wrap items-center gap-2 rounded-lg border border-line p-3"
        >
          <p className="min-w-0 flex-1 basis-64 text-sm text-muted">
            {asking === 'password'
              ? 'They get a new password and are signed out everywhere.'
              : 'They sign in without a code until they set it up again.'}
          </p>
          <Button size="sm" onClick={() => setAsking(null)}>
            Cancel
          </Button>
          <Button size="sm" variant="danger" disabled={busy} onClick={() => void act()}>
            {busy && <Spinner />} {asking === 'password' ? 'Create new password' : 'Remove it'}
          </Button>
        </div>
      )}
      {fresh !== null && <NewPassword name={name} password={fresh} />}
      <p role="status" className="text-sm text-muted empty:hidden">
        {removed && 'Two-step sign-in removed.'}
      </p>
    </Part>
  )
}

function NewPassword({ name, password }: { name: string; password: string }) {
  return (
    <div role="status" className="rounded-lg border border-waiting-line bg-waiting-wash p-3">
      <p className="text-sm font-medium">Tell {name} this password. It won’t be shown again.</p>
      <div className="mt-2 flex items-center gap-2 rounded-md border border-line bg-raised py-1 pr-1 pl-3">
        <code data-testid="new-password" className="min-w-0 flex-1 text-xs [overflow-wrap:anywhere]">
          {password}
        </code>
        <CopyButton text={password} what="password" />
      </div>
    </div>
  )
}

function RemovePart(props: { person: Account; people: readonly Account[]; onChanged: () => Promise<void> }) {
  const { person } = props
  const [, navigate] = useLocation()
  const [open, setOpen] = useState(false)
  return (
    <Part title="Remove">
      {open ? (
        <div className="rounded-lg border border-failed-line p-3">
          <RemovePersonForm
            person={person}
            removedBefore={false}
            heirs={props.people.filter(({ id, role }) => id !== person.id && role !== 'guest')}
            onDone={() => {
              navigate('/settings/people')
              void props.onChanged()
            }}
            onLeave={() => setOpen(false)}
          />
        </div>
      ) : (
        <Button size="sm" variant="danger" className="self-start" onClick={() => setOpen(true)}>
          <UserX className="size-3.5" aria-hidden /> Remove {person.name}
        </Button>
      )}
    </Part>
  )
}
