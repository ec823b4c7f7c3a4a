import { type Account, type UserList, userList } from '@sandlot/shared/account/api'
import type { Role } from '@sandlot/shared/account/role'
import type { Team } from '@sandlot/shared/account/teams-api'
import { ChevronRight, Link2, UserPlus } from 'lucide-react'
import { useDeferredValue, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { useChat } from '../../state/chat-context.ts'
import { cn } from '../../lib/cn.ts'
import { formatCount } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { ROLE_WORDS } from '../account.tsx'
import { AddPersonForm } from './add-person-form.tsx'
import { Invitations } from './invitations.tsx'
import { PersonPage } from './person-page.tsx'
import { RemovedPeople } from './removed-people.tsx'

/** Interval of fetching the list during a removal, in milliseconds. */
const POLL_MS = 2_000
/** Rows that are drawn before one asks for more, or searches. */
const FIRST_ROWS = 100

/** Everybody who may come in, or one of them: for administrators. */
export function People(props: { personId: string | undefined }) {
  const { personId } = props
  const users = useResource('users', async (signal) => userList.parse(await call('listUsers', { signal })), {
    everyMs: (now) => (now?.removed.some(({ done }) => !done) === true ? POLL_MS : undefined),
  })
  const {
    data,
    problem: teamsProblem,
    reload: reloadTeams,
  } = useResource('teams', (signal) => call('listTeams', { signal }))
  const people = users.data
  const teams = data?.teams ?? []
  const problem = users.problem ?? teamsProblem
  const reload = async () => {
    await Promise.all([users.reload(), reloadTeams()])
  }
  const person = people?.users.find(({ id }) => id === personId)
  return (
    <div className="flex flex-col gap-4">
      {problem !== null && <Alert>{problem}</Alert>}
      {people !== null && personId === undefined && (
        <List people={people} teams={teams} onChanged={() => void reload()} />
      )}
      {people !== null && personId !== undefined && (
        <PersonPage key={personId} person={person} people={people.users} teams={teams} onChanged={reload} />
      )}
    </div>
  )
}

function List(props: { people: UserList; teams: readonly Team[]; onChanged: () => void }) {
  const { users, removed } = props.people
  const [adding, setAdding] = useState<'person' | 'link' | null>(null)
  const [wanted, setWanted] = useState('')
  const [role, setRole] = useState<Role | 'all'>('all')
  const [all, setAll] = useState(false)
  const names = useMemo(() => new Map(props.teams.map(({ id, name }) => [id, name])), [props.teams])
  const search = useDeferredValue(wanted.trim().toLowerCase())
  const found = useMemo(
    () =>
      users
        .filter((person) => role === 'all' || person.role === role)
        .filter(({ name, email, teams }) =>
          [name, email, ...teams.map((id) => names.get(id) ?? '')].some((text) =>
            text.toLowerCase().includes(search),
          ),
        ),
    [users, role, search, names],
  )
  const shown = all ? found : found.slice(0, FIRST_ROWS)
  return (
    <>
      <PeopleFilter wanted={wanted} role={role} onWanted={setWanted} onRole={setRole} />
      {adding === null && (
        <div className="flex flex-wrap gap-2">
          <Button size="sm" onClick={() => setAdding('link')}>
            <Link2 className="size-3.5" aria-hidden /> Invite by link
          </Button>
          <Button size="sm" onClick={() => setAdding('person')}>
            <UserPlus className="size-3.5" aria-hidden /> Add a person
          </Button>
        </div>
      )}
      {adding === 'person' && (
        <AddPersonForm
          onDone={() => {
            setAdding(null)
            props.onChanged()
          }}
          onLeave={() => setAdding(null)}
        />
      )}
      <Invitations adding={adding === 'link'} teams={props.teams} onLeave={() => setAdding(null)} />
      <p role="status" className="text-xs text-muted">
        {found.length === users.length
          ? formatCount(users.length, 'person', 'people')
          : `${formatCount(found.length, 'person', 'people')} of ${users.length.toLocaleString('en')}`}
      </p>
      {found.length > 0 && <Table people={shown} teams={names} />}
      {shown.length < found.length && (
        <Button size="sm" className="self-start" onClick={() => setAll(true)}>
          Show all {found.length.toLocaleString('en')}
        </Button>
      )}
      {removed.length > 0 && <RemovedPeople removed={removed} onChanged={props.onChanged} />}
    </>
  )
}

function PeopleFilter(props: {
  wanted: string
  role: Role | 'all'
  onWanted: (wanted: string) => void
  onRole: (role: Role | 'all') => void
}) {
  return (
    <div className="flex flex-wrap items-center gap-2">
      <SearchField
        label="Find a person by name, address or team"
        placeholder="Find a person"
        value={props.wanted}
        onChange={props.onWanted}
        className="basis-56"
      />
      <select
        aria-label="Role"
        className={cn(INPUT, 'w-auto')}
        value={props.role}
        onChange={({ target }) => props.onRole(target.value as Role | 'all')}
      >
        <option value="all">All roles</option>
        {Object.entries(ROLE_WORDS).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </div>
  )
}

function Table(props: { people: readonly Account[]; teams: ReadonlyMap<string, string> }) {
  const { me } = useChat()
  return (
    <table aria-label="People" className="w-full table-fixed text-left text-sm">
      <thead>
        <tr className="border-b border-line text-xs text-muted">
          <th scope="col" className="py-2 pr-3 font-medium">
            Person
          </th>
          <th scope="col" className="w-28 py-2 pr-3 font-medium">
            Role
          </th>
          <th scope="col" className="hidden w-[38%] py-2 font-medium sm:table-cell">
            Teams
          </th>
        </tr>
      </thead>
      <tbody className="divide-y divide-line">
        {props.people.map(({ id, name, email, role, teams }) => (
          <tr key={id} className="relative hover:bg-hover">
            <th scope="row" className="py-2 pr-3 font-normal">
              {/* The whole row is the link. */}
              <Link
                href={`/settings/people/${encodeURIComponent(id)}`}
                className="block truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-accent"
              >
                {name}
                {id === me.id && <span className="ml-1.5 text-xs font-normal text-muted">you</span>}
              </Link>
              <span className="block truncate text-xs text-muted">{email}</span>
            </th>
            <td className={cn('py-2 pr-3', role === 'member' && 'text-muted')}>{ROLE_WORDS[role]}</td>
            <td className="hidden py-2 sm:table-cell">
              <span className="flex items-center gap-2">
                <span className="min-w-0 flex-1 truncate text-muted">
                  {teams.map((team) => props.teams.get(team) ?? team).join(', ')}
                </span>
                <ChevronRight className="size-4 shrink-0 text-faint" aria-hidden />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
