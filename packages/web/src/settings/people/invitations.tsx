import type { Role } from '@sandlot/shared/account/role'
import type { Team } from '@sandlot/shared/account/teams-api'
import { useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { useSubmit } from '../../auth/use-submit.ts'
import { formatDate } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Field, INPUT } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { ROLE_WORDS } from '../account.tsx'
import { RevocableRow } from '../revocable-row.tsx'

const DAYS = [1, 7, 30, 90]

/** Links by which people make their accounts; a new one is shown once. `adding`: make one. */
export function Invitations(props: { adding: boolean; teams: readonly Team[]; onLeave: () => void }) {
  const [fresh, setFresh] = useState<string | null>(null)
  const { data, problem, busy, reload, change } = useResource('invitations', (signal) =>
    call('listInvitations', { signal }),
  )
  const invitations = data?.invitations ?? []
  const open = invitations.filter(({ usedBy, expiresAt }) => usedBy === null && expiresAt > Date.now())
  return (
    <>
      {problem !== null && <Alert>{problem}</Alert>}
      {props.adding && (
        <InviteForm
          teams={props.teams}
          onLeave={props.onLeave}
          onMade={(url) => {
            setFresh(url)
            props.onLeave()
            void reload()
          }}
        />
      )}
      {fresh !== null && (
        <div role="status" className="rounded-lg border border-waiting-line bg-waiting-wash p-3">
          <p className="text-sm font-medium">Send this link now. It works once and won’t be shown again.</p>
          <div className="mt-2 flex items-center gap-2 rounded-md border border-line bg-raised py-1 pr-1 pl-3">
            <code data-testid="new-invitation" className="min-w-0 flex-1 text-xs [overflow-wrap:anywhere]">
              {fresh}
            </code>
            <CopyButton text={fresh} what="link" />
          </div>
        </div>
      )}
      {open.length > 0 && (
        <ul aria-label="Open invitations" className="divide-y divide-line rounded-lg border border-line">
          {open.map(({ id, email, role, createdBy, expiresAt }) => (
            <RevocableRow
              key={id}
              name={email ?? 'anybody with the link'}
              title={
                <span className="block truncate text-sm font-medium">{email ?? 'Anybody with the link'}</span>
              }
              detail={`${ROLE_WORDS[role]} · invited by ${createdBy} · until ${formatDate(expiresAt)}`}
              act="Withdraw"
              label={`Withdraw the invitation for ${email ?? 'anybody with the link'}`}
              busy={busy}
              onAct={() => void change(() => call('revokeInvitation', { params: { id } }))}
            />
          ))}
        </ul>
      )}
    </>
  )
}

function InviteForm(props: { teams: readonly Team[]; onMade: (url: string) => void; onLeave: () => void }) {
  const [role, setRole] = useState<Role>('member')
  const [email, setEmail] = useState('')
  const [days, setDays] = useState(7)
  const [teams, setTeams] = useState<readonly string[]>([])
  const { busy, problem, onSubmit } = useSubmit(async () => {
    const address = email.trim()
    const made = await call('makeInvitation', {
      body: {
        role,
        teams: [...teams],
        email: address === '' ? undefined : address,
        expiresInHours: days * 24,
      },
    })
    props.onMade(made.url)
  })
  return (
    <form
      aria-label="Invite by link"
      onSubmit={onSubmit}
      className="flex flex-col gap-4 rounded-lg border border-line p-3"
    >
      {problem !== null && <Alert>{problem}</Alert>}
      <Field
        label="E-mail"
        type="email"
        autoComplete="off"
        value={email}
        hint="Only this address can use the link. Leave empty for anyone."
        onChange={({ target }) => setEmail(target.value)}
      />
      <div className="grid gap-4 sm:grid-cols-2">
        <label className="flex flex-col gap-1.5 text-sm font-medium">
          Role
          <select className={INPUT} value={role} onChange={({ target }) => setRole(target.value as Role)}>
            {Object.entries(ROLE_WORDS).map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <LifeChoice days={days} onChange={setDays} />
      </div>
      {props.teams.length > 0 && <TeamChoice teams={props.teams} chosen={teams} onChange={setTeams} />}
      <div className="flex justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={busy}>
          {busy && <Spinner />} Create link
        </Button>
      </div>
    </form>
  )
}

function LifeChoice(props: { days: number; onChange: (days: number) => void }) {
  return (
    <label className="flex flex-col gap-1.5 text-sm font-medium">
      Works for
      <select
        className={INPUT}
        value={props.days}
        onChange={({ target }) => props.onChange(Number(target.value))}
      >
        {DAYS.map((one) => (
          <option key={one} value={one}>
            {one === 1 ? 'a day' : `${one} days`}
          </option>
        ))}
      </select>
    </label>
  )
}

function TeamChoice(props: {
  teams: readonly Team[]
  chosen: readonly string[]
  onChange: (teams: readonly string[]) => void
}) {
  const { chosen } = props
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">Teams</legend>
      <div className="flex flex-wrap gap-x-5 gap-y-1.5">
        {props.teams.map(({ id, name }) => (
          <label key={id} className="flex items-center gap-2 text-sm pointer-coarse:min-h-11">
            <input
              type="checkbox"
              className="size-4 accent-accent"
              checked={chosen.includes(id)}
              onChange={({ target }) =>
                props.onChange(target.checked ? [...chosen, id] : chosen.filter((one) => one !== id))
              }
            />
            {name}
          </label>
        ))}
      </div>
    </fieldset>
  )
}
