import type { ApiKey } from '@sandlot/shared/api'
import { type SubmitEvent, useEffect, useState } from 'react'
import { formatDate } from '../lib/format.ts'
import { createKey, fetchKeys, revokeKey } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy-button.tsx'
import { INPUT } from '../ui/field.tsx'
import { KeptLine } from './kept-line.tsx'
import { useAttempt } from './use-attempt.ts'

/** Keys for scripts. A new one is shown once, here, and never again. */
export function ApiKeys() {
  const [keys, setKeys] = useState<ApiKey[] | null>(null)
  const [fresh, setFresh] = useState<string | null>(null)
  const [name, setName] = useState('')
  const { busy, problem, attempt } = useAttempt()
  const reload = async () => setKeys(await fetchKeys())
  const change = (work: () => Promise<void>) =>
    attempt(async () => {
      await work()
      await reload()
    })
  useEffect(() => {
    void attempt(reload)
    // Once; both only set state.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  const create = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void change(async () => {
      setFresh(await createKey(name.trim()))
      setName('')
    })
  }
  return (
    <div className="flex flex-col gap-3">
      {problem !== null && <Alert>{problem}</Alert>}
      {fresh !== null && (
        <div role="status" className="rounded-lg border border-waiting-line bg-waiting-wash p-3">
          <p className="text-sm font-medium">Copy this key now. It is not shown again.</p>
          <div className="mt-2 flex items-center gap-2 rounded-md border border-line bg-raised py-1 pr-1 pl-3">
            <code data-testid="new-key" className="min-w-0 flex-1 text-xs [overflow-wrap:anywhere]">
              {fresh}
            </code>
            <CopyButton text={fresh} what="key" />
          </div>
        </div>
      )}
      {keys !== null && keys.length > 0 && (
        <ul className="divide-y divide-line rounded-lg border border-line">
          {keys.map((key) => (
            <KeptLine
              key={key.id}
              name={key.name}
              title={<span className="block truncate text-sm font-medium">{key.name}</span>}
              detail={
                <>
                  <code>{key.prefix}…</code> made {formatDate(key.createdAt)}
                  {typeof key.lastUsedAt === 'number'
                    ? `, last used ${formatDate(key.lastUsedAt)}`
                    : ', never used'}
                </>
              }
              act="Revoke"
              busy={busy}
              onAct={() => void change(() => revokeKey(key.id))}
            />
          ))}
        </ul>
      )}
      <form onSubmit={create} className="flex gap-2">
        <label htmlFor="key-name" className="sr-only">
          Name of the new key
        </label>
        <input
          id="key-name"
          className={INPUT}
          placeholder="What is it for?"
          value={name}
          maxLength={100}
          onChange={(event) => setName(event.target.value)}
        />
        <Button type="submit" disabled={busy || name.trim() === ''} className="h-10 pointer-coarse:h-11">
          Create key
        </Button>
      </form>
    </div>
  )
}
