/** The teams, and one of them with its members and settings: for administrators. */
import { type Account, userList } from '@sandlot/shared/account/api'
import { type Team, team as teamSchema } from '@sandlot/shared/account/teams-api'
import { ChevronRight, Plus, Trash2, UserPlus } from 'lucide-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { useSubmit } from '../../auth/use-submit.ts'
import { formatCount } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { currentOf } from '../../net/http.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Field, INPUT } from '../../ui/field.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { RevocableRow } from '../revocable-row.tsx'
import { Part } from '../part.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'
import { AgentSettingsForm } from './agent-settings-form.tsx'

/** The most search hits that are offered. */
const MOST_FOUND = 8

export function Teams(props: { teamId: string | undefined }) {
  const { data, problem, reload } = useResource('teams', async (signal) => {
    const [{ teams }, users] = await Promise.all([
      call('listTeams', { signal }),
      call('listUsers', { signal }),
    ])
    return { teams, people: userList.parse(users).users }
  })
  const { teamId } = props
  return (
    <div className="flex flex-col gap-4">
      {problem !== null && <Alert>{problem}</Alert>}
      {data !== null && teamId === undefined && <List teams={data.teams} onChanged={reload} />}
      {data !== null && teamId !== undefined && (
        <TeamPage
          key={teamId}
          team={data.teams.find(({ id }) => id === teamId)}
          people={data.people}
          onChanged={reload}
        />
      )}
    </div>
  )
}

function List(props: { teams: readonly Team[]; onChanged: () => Promise<void> }) {
  const [, navigate] = useLocation()
  const [name, setName] = useState('')
  const { busy, problem, onSubmit } = useSubmit(async () => {
    const made = await call('addTeam', { body: { name: name.trim() } })
    await props.onChanged()
    navigate(`/settings/teams/${encodeURIComponent(made.id)}`)
  })
  return (
    <>
      {props.teams.length === 0 && (
        <p className="text-sm text-muted">
          No teams yet. Teams set tools, models, hosts, limits and instructions for their members.
        </p>
      )}
      {props.teams.length > 0 && (
        <ul aria-label="Teams" className="divide-y divide-line rounded-lg border border-line">
          {props.teams.map((team) => (
            <li key={team.id}>
              <Link
                href={`/settings/teams/${encodeURIComponent(team.id)}`}
                className="flex min-h-12 items-center gap-3 px-3 text-sm hover:bg-hover focus-visible:-outline-offset-2"
              >
                <span className="min-w-0 flex-1 truncate font-medium">{team.name}</span>
                <span className="text-xs text-muted">{formatCount(membersOf(team).length, 'member')}</span>
                <ChevronRight className="size-4 text-faint" aria-hidden />
              </Link>
            </li>
          ))}
        </ul>
      )}
      {problem !== null && <Alert>{problem}</Alert>}
      <form onSubmit={onSubmit} className="flex gap-2">
        <input
          aria-label="Name of the new team"
          className={INPUT}
          placeholder="Name of a new team"
          dir="auto"
          value={name}
          maxLength={100}
          onChange={({ target }) => setName(target.value)}
        />
        <Button type="submit" disabled={busy || name.trim() === ''} className="h-10 pointer-coarse:h-11">
          <Plus className="size-4" aria-hidden /> Create team
        </Button>
      </form>
    </>
  )
}

/** Each person once, with what made them a member. */
function membersOf(team: Team): { userId: string; byGroups: boolean; byAdministrator: boolean }[] {
  return [...Map.groupBy(team.members, ({ userId }) => userId)].map(([userId, rows]) => ({
    userId,
    byGroups: rows.some(({ source }) => source === 'groups'),
    byAdministrator: rows.some(({ source }) => source === 'admin'),
  }))
}

function TeamPage(props: {
  team: Team | undefined
  people: readonly Account[]
  onChanged: () => Promise<void>
}) {
  const { team, people, onChanged } = props
  if (team === undefined)
    return (
      <>
        <h1 className="text-xl font-semibold tracking-tight">Not here</h1>
        <p className="text-sm text-muted">This team doesn’t exist, or was removed.</p>
      </>
    )
  return (
    <div className="flex flex-col gap-10">
      <h1 className="truncate text-xl font-semibold tracking-tight">{team.name}</h1>
      <NamePart team={team} onChanged={onChanged} />
      <MembersPart team={team} people={people} onChanged={onChanged} />
      <Part
        title="Agent settings"
        text="For people in several teams, the most generous setting applies. Unchecked settings are inherited."
      >
        <AgentSettingsForm subject={{ kind: 'team', id: team.id }} />
      </Part>
      <DeletePart team={team} onChanged={onChanged} />
    </div>
  )
}

function NamePart(props: { team: Team; onChanged: () => Promise<void> }) {
  const { id, name } = props.team
  const [wanted, setWanted] = useState(name)
  const [theirs, setTheirs] = useState<string | null>(null)
  const rename = async (was: string) => {
    setTheirs(null)
    try {
      await call('renameTeam', { params: { id }, body: { name: wanted.trim(), was } })
    } catch (error) {
      const current = currentOf(error, teamSchema)
      if (current === undefined) throw error
      return setTheirs(current.name)
    }
    await props.onChanged()
  }
  const { busy, problem, onSubmit } = useSubmit(() => rename(name))
  const again = useAttempt()
  return (
    <form aria-label="Name of the team" onSubmit={onSubmit} className="flex flex-col gap-3">
      {(problem ?? again.problem) !== null && <Alert>{problem ?? again.problem}</Alert>}
      <div className="flex items-end gap-2">
        <Field
          className="min-w-0 flex-1"
          label="Name"
          required
          maxLength={100}
          value={wanted}
          onChange={({ target }) => setWanted(target.value)}
        />
        <Button
          type="submit"
          className="h-10 pointer-coarse:h-11"
          disabled={busy || wanted.trim() === '' || wanted.trim() === name}
        >
          {busy && <Spinner />} Rename
        </Button>
      </div>
      {theirs !== null && (
        <div role="alert" className="rounded-lg border border-waiting-line bg-waiting-wash p-3 text-sm">
          <p className="font-medium">Another administrator called it “{theirs}” meanwhile.</p>
          <div className="mt-2 flex flex-wrap gap-2">
            <Button
              size="sm"
              onClick={() => {
                setWanted(theirs)
                setTheirs(null)
                void props.onChanged()
              }}
            >
              Keep it
            </Button>
            <Button size="sm" onClick={() => void again.attempt(() => rename(theirs))}>
              Call it “{wanted.trim()}” all the same
            </Button>
          </div>
        </div>
      )}
    </form>
  )
}

function MembersPart(props: { team: Team; people: readonly Account[]; onChanged: () => Promise<void> }) {
  const { team, people } = props
  const [wanted, setWanted] = useState('')
  const { busy, problem, attempt } = useAttempt()
  const byId = new Map(people.map((person) => [person.id, person]))
  const members = membersOf(team)
    .map((member) => ({ ...member, person: byId.get(member.userId) }))
    .toSorted((one, other) => (one.person?.name ?? '').localeCompare(other.person?.name ?? ''))
  const inside = new Set(members.filter(({ byAdministrator }) => byAdministrator).map(({ userId }) => userId))
  const search = wanted.trim().toLowerCase()
  const found =
    search === ''
      ? []
      : people.filter(
          ({ id, name, email }) => !inside.has(id) && `${name}\n${email}`.toLowerCase().includes(search),
        )
  const set = (userId: string, member: boolean) =>
    void attempt(async () => {
      await call('setTeamMember', { params: { id: team.id, userId }, body: { member } })
      if (member) setWanted('')
      await props.onChanged()
    })
  return (
    <Part title="Members">
      {problem !== null && <Alert>{problem}</Alert>}
      <div className="flex flex-col gap-2">
        <SearchField
          label="Find a person to add"
          placeholder="Find a person to add"
          value={wanted}
          onChange={setWanted}
        />
        {search !== '' && <FoundPeople found={found} team={team} busy={busy} onAdd={(id) => set(id, true)} />}
      </div>
      {members.length === 0 && <p className="text-sm text-muted">None yet.</p>}
      {members.length > 0 && (
        <ul aria-label="Members" className="divide-y divide-line rounded-lg border border-line">
          {members.map((member) => (
            <MemberRow
              key={member.userId}
              member={member}
              busy={busy}
              onRemove={() => set(member.userId, false)}
            />
          ))}
        </ul>
      )}
    </Part>
  )
}

function FoundPeople(props: {
  found: readonly Account[]
  team: Team
  busy: boolean
  onAdd: (userId: string) => void
}) {
  const { found, team } = props
  return (
    <ul aria-label="Found people" className="divide-y divide-line rounded-lg border border-line">
      {found.slice(0, MOST_FOUND).map(({ id, name, email }) => (
        <li key={id} className="flex items-center gap-3 py-2 pr-2 pl-3">
          <span className="min-w-0 flex-1">
            <span className="block truncate text-sm font-medium">{name}</span>
            <span className="block truncate text-xs text-muted">{email}</span>
          </span>
          <Button
            size="sm"
            disabled={props.busy}
            aria-label={`Add ${name} to ${team.name}`}
            onClick={() => props.onAdd(id)}
          >
            <UserPlus className="size-3.5" aria-hidden /> Add
          </Button>
        </li>
      ))}
      {found.length === 0 && <li className="px-3 py-2 text-sm text-muted">No matches.</li>}
      {found.length > MOST_FOUND && (
        <li className="px-3 py-2 text-xs text-muted">
          and {formatCount(found.length - MOST_FOUND, 'more', 'more')}: type on
        </li>
      )}
    </ul>
  )
}

function MemberRow(props: {
  member: ReturnType<typeof membersOf>[number] & { person: Account | undefined }
  busy: boolean
  onRemove: () => void
}) {
  const { userId, person, byGroups, byAdministrator } = props.member
  const name = person?.name ?? userId
  const title = <span className="block truncate text-sm font-medium">{name}</span>
  const detail = [
    ...(person === undefined ? [] : [person.email]),
    ...(byGroups ? ['by their provider’s groups'] : []),
  ].join(' · ')
  return byAdministrator ? (
    <RevocableRow
      name={name}
      title={title}
      detail={detail}
      act="Take out"
      busy={props.busy}
      onAct={props.onRemove}
    />
  ) : (
    <li className="py-2 pr-2 pl-3">
      {title}
      <span className="block text-xs text-muted">{detail}</span>
    </li>
  )
}

function DeletePart(props: { team: Team; onChanged: () => Promise<void> }) {
  const { id, name } = props.team
  const [, navigate] = useLocation()
  const [sure, setSure] = useState(false)
  const { busy, problem, attempt } = useAttempt()
  return (
    <Part title="Delete">
      {problem !== null && <Alert>{problem}</Alert>}
      {sure ? (
        <div
          role="group"
          aria-label="Are you sure?"
          className="flex flex-wrap items-center gap-2 rounded-lg border border-line p-3"
        >
          <p className="min-w-0 flex-1 basis-64 text-sm text-muted">
            Settings of “{name}” will no longer apply. Its members keep their accounts and inherit other
            settings.
          </p>
          <Button size="sm" onClick={() => setSure(false)}>
            Cancel
          </Button>
          <Button
            size="sm"
            variant="danger"
            disabled={busy}
            onClick={() =>
              void attempt(async () => {
                await call('removeTeam', { params: { id } })
                navigate('/settings/teams')
                await props.onChanged()
              })
            }
          >
            {busy && <Spinner />} Delete “{name}”
          </Button>
        </div>
      ) : (
        <Button size="sm" variant="danger" className="self-start" onClick={() => setSure(true)}>
          <Trash2 className="size-3.5" aria-hidden /> Delete this team
        </Button>
      )}
    </Part>
  )
}
