/** All that Sandlot keeps of oneself: to take along, and to be rid of. */
import { Download } from 'lucide-react'
import { useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { useSubmit } from '../../auth/use-submit.ts'
import { useChat } from '../../state/chat-context.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Field } from '../../ui/field.tsx'
import { PasswordField } from '../../ui/password-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Part } from '../part.tsx'

export function OwnData() {
  const { me } = useChat()
  const [deleting, setDeleting] = useState(false)
  const isGuest = me.role === 'guest'
  return (
    <>
      <Part
        title="Export"
        text={
          isGuest
            ? 'A zip file with your account details and the audit entries about you.'
            : 'A zip file with your chats (JSON and Markdown), their images and outputs, your workspace files, rules, secret names, instructions and usage, and the audit entries about you.'
        }
      >
        <a
          href="/api/export"
          download
          className="inline-flex h-10 items-center gap-2 self-start rounded-lg border border-line-strong bg-raised px-3.5 text-sm font-medium shadow-1 hover:bg-hover pointer-coarse:h-11"
        >
          <Download className="size-4" aria-hidden /> Download all of my data
        </a>
        {!isGuest && <p className="text-xs text-muted">Large workspaces take longer.</p>}
      </Part>
      <Part
        title="Delete my account"
        text="Permanently deletes your chats, files, secrets, rules and everything else, and signs you out everywhere. An audit entry and your messages in other people’s chats remain."
      >
        {deleting ? (
          <DeleteForm email={me.email} onLeave={() => setDeleting(false)} />
        ) : (
          <Button variant="danger" className="self-start" onClick={() => setDeleting(true)}>
            Delete my account…
          </Button>
        )}
      </Part>
    </>
  )
}

function DeleteForm(props: { email: string; onLeave: () => void }) {
  const { email } = props
  const [typed, setTyped] = useState('')
  const [password, setPassword] = useState('')
  const ways = useResource('ways', (signal) => call('listWays', { signal }))
  const hasPassword = ways.data?.password
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('deleteAccount', {
      body: { email: typed.trim(), password: hasPassword === true ? password : undefined },
    })
    // Nothing of this page is theirs any more.
    window.location.assign('/')
  })
  const isTyped = typed.trim().toLowerCase() === email.toLowerCase()
  return (
    <form aria-label="Delete my account" onSubmit={onSubmit} className="flex flex-col gap-4">
      {(problem ?? ways.problem) !== null && <Alert>{problem ?? ways.problem}</Alert>}
      <Field
        label={`Type “${email}” to confirm`}
        value={typed}
        autoComplete="off"
        spellCheck={false}
        onChange={({ target }) => setTyped(target.value)}
      />
      {hasPassword === true && (
        <PasswordField
          label="Your password"
          autoComplete="current-password"
          value={password}
          onChange={({ target }) => setPassword(target.value)}
        />
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button
          type="submit"
          variant="danger"
          disabled={busy || !isTyped || hasPassword === null || (hasPassword && password === '')}
        >
          {busy && <Spinner />} Delete my account
        </Button>
      </div>
    </form>
  )
}
