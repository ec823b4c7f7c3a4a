import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/account/api'
import { MAX_NAME_CHARS } from '@sandlot/shared/account/account-fields'
import { messageOf } from '@sandlot/shared/base/errors'
import type { Role } from '@sandlot/shared/account/role'
import { KeyRound, LogOut } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { signedOut } from '@sandlot/shared/account/sign-in-api'
import { useSubmit } from '../auth/use-submit.ts'
import { useChat } from '../state/chat-context.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { PasswordField, PasswordOwner } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { showToast } from '../ui/toasts.tsx'
import { Part } from './part.tsx'

export const ROLE_WORDS: Record<Role, string> = { admin: 'Administrator', member: 'Member', guest: 'Guest' }

/** The signed-in user, and the button to sign out. */
export function Account() {
  const { me, onSignedOut } = useChat()
  const [, navigate] = useLocation()
  const [problem, setProblem] = useState<string | null>(null)
  const leave = () =>
    call('signOut').then(
      (answer) => {
        // Absent where the provider has no sign-out of its own.
        const { data } = signedOut.safeParse(answer)
        if (data !== undefined) return location.assign(data.url)
        // The next user signs in at the start page.
        navigate('/', { replace: true })
        onSignedOut()
      },
      (error: unknown) => setProblem(messageOf(error)),
    )
  return (
    <div className="flex flex-col gap-3">
      {problem !== null && <Alert>{problem}</Alert>}
      <div className="flex flex-wrap items-center gap-3 rounded-xl border border-line p-4">
        <span
          className="flex size-11 shrink-0 items-center justify-center rounded-full bg-accent-wash text-base font-semibold text-accent"
          aria-hidden
        >
          {me.name.slice(0, 1).toUpperCase()}
        </span>
        <div className="min-w-0 flex-1 basis-48">
          <p className="truncate text-base font-medium">{me.name}</p>
          <p className="truncate text-sm text-muted">
            {me.email} · {ROLE_WORDS[me.role]}
          </p>
        </div>
        <Button size="sm" onClick={() => void leave()}>
          <LogOut className="size-3.5" aria-hidden /> Sign out
        </Button>
      </div>
      <NameForm />
    </div>
  )
}

function NameForm() {
  const { me, renewMe } = useChat()
  const [name, setName] = useState(me.name)
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('changeName', { body: { name: name.trim() } })
    await renewMe()
    showToast('Name changed.')
  })
  const same = name.trim() === '' || name.trim() === me.name
  return (
    <form aria-label="Your name" onSubmit={onSubmit} className="mt-5 flex flex-col gap-3">
      {problem !== null && <Alert>{problem}</Alert>}
      <div className="flex items-start gap-2">
        <Field
          label="Name"
          hint="Shown to the agent and to people in your chats."
          className="min-w-0 flex-1"
          value={name}
          maxLength={MAX_NAME_CHARS}
          required
          autoComplete="name"
          onChange={({ target }) => setName(target.value)}
        />
        <Button type="submit" className="mt-6.5 h-10" disabled={busy || same}>
          {busy && <Spinner />} Save
        </Button>
      </div>
    </form>
  )
}

/** The password of the person who is signed in, to be changed. */
export function Password() {
  const { me } = useChat()
  const [state, setState] = useState<'as it is' | 'changing' | 'changed'>('as it is')
  return (
    <Part title="Password">
      {state === 'changing' ? (
        <PasswordForm
          email={me.email}
          onDone={() => setState('changed')}
          onLeave={() => setState('as it is')}
        />
      ) : (
        <Button size="sm" className="self-start" onClick={() => setState('changing')}>
          <KeyRound className="size-3.5" aria-hidden /> Change password
        </Button>
      )}
      <p role="status" className="text-sm text-muted empty:hidden">
        {state === 'changed' && 'Password changed. You’ve been signed out everywhere else.'}
      </p>
    </Part>
  )
}

/** Another password for the person who is signed in. `onDone`: it holds. */
function PasswordForm(props: { email: string; onDone: () => void; onLeave: () => void }) {
  const [form, setForm] = useState({ current: '', password: '' })
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('changePassword', { body: form })
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
        hint={`At least ${MIN_PASSWORD_CHARS} characters. You’ll be signed out everywhere else; API keys keep working.`}
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
