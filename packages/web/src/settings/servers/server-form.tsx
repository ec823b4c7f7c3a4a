/** A server: where it is or what is started, its values, and how one signs in to it. */
import {
  type ServerConnection,
  type ServerScope,
  type ServersView,
  type ServerView,
  serversView,
} from '@sandlot/shared/admin/mcp-servers'
import type { OwnServers } from '@sandlot/shared/account/agent-settings'
import { Plus, X } from 'lucide-react'
import { useId, useState } from 'react'
import { SERVER_ACTIONS } from './server-actions.ts'
import { useSubmit } from '../../auth/use-submit.ts'
import { cn } from '../../lib/cn.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { Field, INPUT } from '../../ui/field.tsx'
import { PasswordField } from '../../ui/password-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { draftOf, newValue, requestOf, type ServerDraft, type ValueDraft } from './server-draft.ts'

const KIND_WORDS: Record<ServerScope, Record<ServerConnection['kind'], string>> = {
  own: { http: 'At an address (HTTP)', sandbox: 'A program in your sandbox' },
  deployment: { http: 'At an address (HTTP)', sandbox: 'A program in each person’s sandbox' },
}

const AUTH_WORDS: Record<ServerScope, readonly (readonly [ServerDraft['auth'], string])[]> = {
  own: [
    ['none', 'None, or a header'],
    ['oauth', 'I sign in there (OAuth)'],
  ],
  deployment: [
    ['none', 'None, or a header'],
    ['oauth', 'Each person signs in there (OAuth)'],
    ['client-credentials', 'Sandlot signs in (client credentials)'],
  ],
}

export function ServerForm(props: {
  of: ServerScope
  may: OwnServers
  /** Null: a new one. */
  server: ServerView | null
  onSaved: (now: ServersView, name: string) => void
  onLeave: () => void
}) {
  const { of, server } = props
  const [draft, setDraft] = useState<ServerDraft>(() => draftOf(server))
  const set = (change: Partial<ServerDraft>) => setDraft({ ...draft, ...change })
  const { busy, problem, onSubmit } = useSubmit(async () => {
    const body = requestOf(draft, server)
    const answer = await (server === null
      ? call(SERVER_ACTIONS[of].add, { body })
      : call(SERVER_ACTIONS[of].change, { params: { id: server.id }, body }))
    props.onSaved(serversView.parse(answer), body.name)
  })
  return (
    <form
      aria-label={server === null ? 'New server' : `Change ${server.name}`}
      onSubmit={onSubmit}
      className="flex flex-col gap-4"
    >
      {problem !== null && <Alert>{problem}</Alert>}
      <div className="grid gap-4 sm:grid-cols-2">
        {server === null && (
          <Select
            label="Where it is"
            value={draft.kind}
            choices={Object.entries(KIND_WORDS[of])}
            onChange={(kind) => set({ kind: kind === 'sandbox' ? 'sandbox' : 'http' })}
          />
        )}
        <Field
          label="Name"
          value={draft.name}
          required
          maxLength={40}
          pattern="[A-Za-z0-9][A-Za-z0-9_\-]*"
          title="Letters, digits, - and _"
          autoComplete="off"
          spellCheck={false}
          placeholder="tickets"
          hint="Letters, digits, - and _. Used in rules."
          onChange={({ target }) => set({ name: target.value })}
        />
      </div>
      {draft.kind === 'http' ? (
        <HttpFields of={of} may={props.may} draft={draft} server={server} onChange={set} />
      ) : (
        <ProgramFields draft={draft} onChange={set} />
      )}
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={busy || draft.name.trim() === ''}>
          {busy && <Spinner />} {server === null ? 'Add and test' : 'Save and test'}
        </Button>
      </div>
    </form>
  )
}

function HttpFields(props: {
  of: ServerScope
  may: OwnServers
  draft: ServerDraft
  server: ServerView | null
  onChange: (change: Partial<ServerDraft>) => void
}) {
  const { of, draft, server, onChange } = props
  return (
    <>
      <Field
        label="Address"
        type="url"
        value={draft.url}
        required
        maxLength={500}
        autoComplete="off"
        placeholder="https://mcp.example.org/mcp"
        hint={
          props.may === 'local'
            ? 'As reachable from the server.'
            : 'A public address. Only administrators can add servers on this network.'
        }
        onChange={({ target }) => onChange({ url: target.value })}
      />
      <Select
        label="Sign-in"
        value={draft.auth}
        choices={AUTH_WORDS[of]}
        onChange={(auth) => onChange({ auth: AUTH_WORDS[of].find(([one]) => one === auth)?.[0] ?? 'none' })}
      />
      {draft.auth !== 'none' && <ClientFields draft={draft} server={server} onChange={onChange} />}
      <Values
        title="Headers"
        one="header"
        placeholder="Authorization"
        hint="Sent with every request. Values are stored encrypted and never shown again; ${secret:NAME} in one is that secret of each person who uses the server."
        values={draft.headers}
        onChange={(headers) => onChange({ headers })}
      />
    </>
  )
}

function ClientFields(props: {
  draft: ServerDraft
  server: ServerView | null
  onChange: (change: Partial<ServerDraft>) => void
}) {
  const { draft, server, onChange } = props
  const machine = draft.auth === 'client-credentials'
  const keeps = server?.hasClientSecret === true
  return (
    <details
      className="rounded-lg border border-line px-3 text-sm"
      open={machine || draft.clientId !== '' ? true : undefined}
    >
      <summary className="cursor-pointer py-2 text-muted hover:text-ink pointer-coarse:py-3">
        {machine ? 'The client registered there' : 'A client registered there, if required'}
      </summary>
      <div className="grid gap-4 pt-1 pb-3 sm:grid-cols-2">
        <Field
          label="Client ID"
          value={draft.clientId}
          required={machine}
          maxLength={500}
          autoComplete="off"
          onChange={({ target }) => onChange({ clientId: target.value })}
        />
        <PasswordField
          label="Client secret"
          value={draft.clientSecret}
          required={machine && !keeps}
          maxLength={8_192}
          autoComplete="new-password"
          placeholder={keeps ? 'Stored' : ''}
          onChange={({ target }) => onChange({ clientSecret: target.value })}
        />
        <Field
          label="Scopes"
          value={draft.scope}
          maxLength={500}
          autoComplete="off"
          hint="Requested in addition to the server’s."
          onChange={({ target }) => onChange({ scope: target.value })}
        />
        <Field
          label="Authority"
          type="url"
          value={draft.issuer}
          maxLength={500}
          autoComplete="off"
          placeholder="https://login.example.org"
          hint="Leave empty to use the server’s."
          onChange={({ target }) => onChange({ issuer: target.value })}
        />
      </div>
    </details>
  )
}

function ProgramFields(props: { draft: ServerDraft; onChange: (change: Partial<ServerDraft>) => void }) {
  const { draft, onChange } = props
  const id = useId()
  return (
    <>
      <Field
        label="Command"
        value={draft.command}
        required
        maxLength={1_000}
        autoComplete="off"
        spellCheck={false}
        className="font-mono"
        placeholder="npx"
        hint="It must be in the sandbox image or the workspace, and uses the sandbox’s network."
        onChange={({ target }) => onChange({ command: target.value })}
      />
      <div className="flex flex-col gap-1.5">
        <label htmlFor={id} className="text-sm font-medium">
          Arguments
        </label>
        <textarea
          id={id}
          className={cn(INPUT, 'h-20 resize-y py-2 font-mono')}
          placeholder={'One a line:\n-y\ntickets-mcp@2.1.0'}
          spellCheck={false}
          value={draft.args}
          onChange={({ target }) => onChange({ args: target.value })}
        />
      </div>
      <Values
        title="Variables"
        one="variable"
        placeholder="TICKETS_URL"
        hint="Stored encrypted, but any command in the sandbox can read them. Don’t put sensitive keys here."
        values={draft.env}
        onChange={(env) => onChange({ env })}
      />
    </>
  )
}

function Select(props: {
  label: string
  value: string
  choices: readonly (readonly [string, string])[]
  onChange: (value: string) => void
}) {
  return (
    <label className="flex flex-col gap-1.5 text-sm font-medium">
      {props.label}
      <select
        className={cn(INPUT, 'font-normal')}
        value={props.value}
        onChange={({ target }) => props.onChange(target.value)}
      >
        {props.choices.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  )
}

function Values(props: {
  title: string
  /** In the singular. */
  one: string
  placeholder: string
  hint: string
  values: readonly ValueDraft[]
  onChange: (values: readonly ValueDraft[]) => void
}) {
  const { one, values, onChange } = props
  const change = (value: ValueDraft, to: Partial<ValueDraft>) =>
    onChange(values.map((other) => (other === value ? { ...value, ...to } : other)))
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1.5 text-sm font-medium">{props.title}</legend>
      {values.map((value, at) => {
        const named = value.name.trim() === '' ? `the ${one} ${at + 1}` : value.name
        return (
          <div key={value.key} className="flex items-center gap-2 max-sm:flex-wrap">
            <input
              aria-label={`Name of the ${one} ${at + 1}`}
              className={cn(INPUT, 'font-mono sm:w-56')}
              placeholder={props.placeholder}
              value={value.name}
              maxLength={100}
              required
              spellCheck={false}
              autoCapitalize="off"
              autoComplete="off"
              onChange={({ target }) => change(value, { name: target.value, stored: false })}
            />
            <input
              aria-label={`Value of ${named}`}
              type="password"
              className={cn(INPUT, 'min-w-0 flex-1')}
              placeholder={value.stored ? 'Stored' : 'Value'}
              value={value.value}
              maxLength={8_192}
              required={!value.stored}
              autoComplete="new-password"
              onChange={({ target }) => change(value, { value: target.value })}
            />
            <IconButton
              label={`Remove ${named}`}
              onClick={() => onChange(values.filter((other) => other !== value))}
            >
              <X aria-hidden />
            </IconButton>
          </div>
        )
      })}
      <div>
        <Button size="sm" onClick={() => onChange([...values, newValue()])}>
          <Plus className="size-3.5" aria-hidden /> Add a {one}
        </Button>
      </div>
      <p className="text-xs text-muted">{props.hint}</p>
    </fieldset>
  )
}
