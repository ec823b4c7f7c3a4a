import { messageOf } from '@sandlot/shared/errors'
import { KeyRound, LogOut } from 'lucide-react'
import { useState } from 'react'
import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/api'
import { useChat } from '../chat/chat-context.ts'
import { changePassword, signOut } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { useSubmit } from '../auth/use-submit.ts'
import { PasswordField, PasswordOwner } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'

/** Who is signed in, their password, and the way out. */
export function Account() {
  const { me, onSignedOut } = useChat()
  const [problem, setProblem] = useState<string | null>(null)
  const [password, setPassword] = useState<'as it is' | 'changing' | 'changed'>('as it is')
  return (
    <div className="flex flex-col gap-3">
      {problem !== null && <Alert>{problem}</Alert>}
      <div className="flex flex-wrap items-center gap-3 rounded-lg border border-line py-2.5 pr-2.5 pl-3">
        <div className="min-w-0 flex-1 basis-48">
          <p className="truncate text-sm font-medium">
            {me.name}
            {me.role === 'admin' && (
              <span className="ml-2 text-xs font-normal text-muted">Administrator</span>
            )}
          </p>
          <p className="truncate text-xs text-muted">{me.email}</p>
        </div>
        <div className="flex gap-2">
          {password !== 'changing' && (
            <Button size="sm" onClick={() => setPassword('changing')}>
              <KeyRound className="size-3.5" aria-hidden /> Change password
            </Button>
          )}
          <Button
            size="sm"
            onClick={() => void signOut().then(onSignedOut, (error: unknown) => setProblem(messageOf(error)))}
          >
            <LogOut className="size-3.5" aria-hidden /> Sign out
          </Button>
        </div>
      </div>
      {password === 'changing' && (
        <PasswordForm
          email={me.email}
          onDone={() => setPassword('changed')}
          onLeave={() => setPassword('as it is')}
        />
      )}
      <p role="status" className="text-sm text-muted empty:hidden">
        {password === 'changed' && 'Your password is changed. You are signed out everywhere else.'}
      </p>
    </div>
  )
}

/** Another password for the person who is signed in. `onDone`: it holds. */
function PasswordForm(props: { email: string; onDone: () => void; onLeave: () => void }) {
  const [form, setForm] = useState({ current: '', password: '' })
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await changePassword(form)
    props.onDone()
  })
  const field = (name: keyof typeof form) => ({
    name,
    value: form[name],
    required: true,
    maxLength: MAX_PASSWORD_CHARS,
    onChange: (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value }),
  })
  return (
    <form
      aria-label="Change password"
      onSubmit={onSubmit}
      className="flex flex-col gap-4 rounded-lg border border-line p-3"
    >
      {problem !== null && <Alert>{problem}</Alert>}
      <PasswordOwner email={props.email} />
      <PasswordField {...field('current')} label="Current password" autoComplete="current-password" />
      <PasswordField
        {...field('password')}
        label="New password"
        autoComplete="new-password"
        minLength={MIN_PASSWORD_CHARS}
        hint={`At least ${MIN_PASSWORD_CHARS} characters. You are signed out everywhere else; API keys stay.`}
      />
      <div className="flex justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={busy}>
          {busy && <Spinner />} Change password
        </Button>
      </div>
    </form>
  )
}
