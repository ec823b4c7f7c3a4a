import { MAX_SECRET_CHARS, secretName } from '@sandlot/shared/account/secrets'
import { type SubmitEvent, useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { formatDate } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { INPUT } from '../ui/field.tsx'
import { RevocableRow } from './revocable-row.tsx'

/**
 * Tokens that tools use for this person. A value goes in here and is never shown again, here or
 * anywhere.
 */
export function Secrets() {
  const { data, problem, busy, change } = useResource('secrets', (signal) => call('listSecrets', { signal }))
  const secrets = data?.secrets ?? []
  return (
    <div className="flex flex-col gap-3">
      {problem !== null && <Alert>{problem}</Alert>}
      {secrets.length > 0 && (
        <ul className="divide-y divide-line rounded-lg border border-line">
          {secrets.map((secret) => (
            <RevocableRow
              key={secret.name}
              name={secret.name}
              title={<code className="block truncate text-sm font-medium">{secret.name}</code>}
              detail={`set ${formatDate(secret.updatedAt)}`}
              act="Remove"
              busy={busy}
              onAct={() => void change(() => call('removeSecret', { params: { name: secret.name } }))}
            />
          ))}
        </ul>
      )}
      <NewSecret busy={busy} change={change} />
    </div>
  )
}

function NewSecret(props: { busy: boolean; change: (work: () => Promise<void>) => Promise<void> }) {
  const { busy, change } = props
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const misnamed = name !== '' && !secretName.safeParse(name).success
  const save = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void change(async () => {
      await call('setSecret', { params: { name }, body: { value } })
      setName('')
      setValue('')
    })
  }
  return (
    <>
      <form onSubmit={save} className="flex flex-wrap gap-2" autoComplete="off">
        <label htmlFor="secret-name" className="sr-only">
          Name of the secret
        </label>
        <input
          id="secret-name"
          className={`${INPUT} min-w-40 flex-1`}
          placeholder="Name, like GOOGLE_REFRESH_TOKEN"
          value={name}
          maxLength={128}
          spellCheck={false}
          aria-invalid={misnamed}
          aria-describedby={misnamed ? 'secret-name-help' : undefined}
          onChange={(event) => setName(event.target.value)}
        />
        <label htmlFor="secret-value" className="sr-only">
          Its value
        </label>
        <input
          id="secret-value"
          type="password"
          className={`${INPUT} min-w-40 flex-1`}
          placeholder="Value; not shown again"
          value={value}
          maxLength={MAX_SECRET_CHARS}
          autoComplete="new-password"
          onChange={(event) => setValue(event.target.value)}
        />
        <Button
          type="submit"
          disabled={busy || name === '' || misnamed || value === ''}
          className="h-10 pointer-coarse:h-11"
        >
          Save
        </Button>
      </form>
      {misnamed && (
        <p id="secret-name-help" className="text-xs text-muted">
          Letters, digits, “_”, “.” and “-”, not a digit first.
        </p>
      )}
    </>
  )
}
