import type { ApiKey } from '@sandlot/shared/account/api'
import { DEFAULT_KEY_SCOPES, type KeyScope } from '@sandlot/shared/account/sign-in-api'
import { type SubmitEvent, useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { useChat } from '../state/chat-context.ts'
import { cn } from '../lib/cn.ts'
import { formatDate } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy-button.tsx'
import { INPUT } from '../ui/field.tsx'
import { RevocableRow } from './revocable-row.tsx'

const SCOPE_WORDS: Record<KeyScope, string> = {
  chat: 'Send messages; change chats and settings',
  read: 'Read chats, outputs and lists',
  files: 'Workspace files and uploads',
  exec: 'Run commands directly',
  admin: 'Administration',
}
const SCOPES = Object.keys(SCOPE_WORDS) as KeyScope[]
/** Days; 0: it does not expire. */
const LIVES = [
  [0, 'Does not expire'],
  [30, 'For 30 days'],
  [90, 'For 90 days'],
  [365, 'For a year'],
] as const

/** Keys for scripts. A new one is shown once, here, and never again. */
export function ApiKeys() {
  const [fresh, setFresh] = useState<string | null>(null)
  const { data, problem, busy, change } = useResource('keys', (signal) => call('listKeys', { signal }))
  const keys = data?.keys ?? []
  return (
    <div className="flex flex-col gap-3">
      {problem !== null && <Alert>{problem}</Alert>}
      {fresh !== null && <FreshKey apiKey={fresh} />}
      {keys.length > 0 && (
        <ul className="divide-y divide-line rounded-lg border border-line">
          {keys.map((key) => (
            <KeyRow
              key={key.id}
              apiKey={key}
              busy={busy}
              onRevoke={() => void change(() => call('deleteKey', { params: { id: key.id } }))}
            />
          ))}
        </ul>
      )}
      <NewKey busy={busy} change={change} onMade={setFresh} />
    </div>
  )
}

function FreshKey({ apiKey }: { apiKey: string }) {
  return (
    <div role="status" className="rounded-lg border border-waiting-line bg-waiting-wash p-3">
      <p className="text-sm font-medium">Copy this key now. It won’t be shown again.</p>
      <div className="mt-2 flex items-center gap-2 rounded-md border border-line bg-raised py-1 pr-1 pl-3">
        <code data-testid="new-key" className="min-w-0 flex-1 text-xs [overflow-wrap:anywhere]">
          {apiKey}
        </code>
        <CopyButton text={apiKey} what="key" />
      </div>
    </div>
  )
}

function KeyRow(props: { apiKey: ApiKey; busy: boolean; onRevoke: () => void }) {
  const { apiKey: key } = props
  return (
    <RevocableRow
      name={key.name}
      title={<span className="block truncate text-sm font-medium">{key.name}</span>}
      detail={
        <>
          <code>{key.prefix}…</code> made {formatDate(key.createdAt)}
          {typeof key.lastUsedAt === 'number' ? `, last used ${formatDate(key.lastUsedAt)}` : ', never used'}
          {` · ${key.scopes.join(', ')} · `}
          {expiryWords(key.expiresAt)}
        </>
      }
      act="Revoke"
      busy={props.busy}
      onAct={props.onRevoke}
    />
  )
}

function NewKey(props: {
  busy: boolean
  change: (work: () => Promise<void>) => Promise<void>
  onMade: (key: string) => void
}) {
  const { busy, change } = props
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<readonly KeyScope[]>(DEFAULT_KEY_SCOPES)
  const [days, setDays] = useState(0)
  const create = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void change(async () => {
      const expiresInDays = days === 0 ? undefined : days
      props.onMade(
        (await call('createKey', { body: { name: name.trim(), scopes: [...scopes], expiresInDays } })).key,
      )
      setName('')
    })
  }
  return (
    <form
      aria-label="New key"
      onSubmit={create}
      className="flex flex-col gap-3 rounded-lg border border-line p-3"
    >
      <div className="flex flex-wrap gap-2">
        <label htmlFor="key-name" className="sr-only">
          Name of the new key
        </label>
        <input
          id="key-name"
          className={cn(INPUT, 'min-w-0 flex-1 basis-48')}
          placeholder="What is it for?"
          value={name}
          maxLength={100}
          onChange={(event) => setName(event.target.value)}
        />
        <select
          aria-label="Expires"
          className={cn(INPUT, 'w-auto')}
          value={days}
          onChange={({ target }) => setDays(Number(target.value))}
        >
          {LIVES.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      </div>
      <ScopeChoice scopes={scopes} onChange={setScopes} />
      <Button type="submit" className="self-end" disabled={busy || name.trim() === '' || scopes.length === 0}>
        Create key
      </Button>
    </form>
  )
}

function ScopeChoice(props: {
  scopes: readonly KeyScope[]
  onChange: (scopes: readonly KeyScope[]) => void
}) {
  const { scopes } = props
  const { me } = useChat()
  return (
    <fieldset>
      <legend className="mb-1 text-xs text-muted">Permissions</legend>
      <div className="grid gap-x-4 gap-y-1 sm:grid-cols-2">
        {SCOPES.filter((scope) => scope !== 'admin' || me.role === 'admin').map((scope) => (
          <label key={scope} className="flex min-h-7 items-center gap-2.5 text-sm pointer-coarse:min-h-11">
            <input
              type="checkbox"
              className="size-4 shrink-0 accent-accent"
              checked={scopes.includes(scope)}
              onChange={({ target }) =>
                props.onChange(target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))
              }
            />
            {SCOPE_WORDS[scope]}
          </label>
        ))}
      </div>
    </fieldset>
  )
}

function expiryWords(at: number | null): React.ReactNode {
  if (at === null) return 'does not expire'
  if (at > Date.now()) return `until ${formatDate(at)}`
  return <span className="font-medium text-failed">expired {formatDate(at)}</span>
}
