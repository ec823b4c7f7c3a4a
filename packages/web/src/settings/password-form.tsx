import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/api'
import { useState } from 'react'
import { useSubmit } from '../auth/use-submit.ts'
import { changePassword } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { PasswordField, PasswordOwner } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'

/** Another password for the person who is signed in. `onDone`: it holds. */
export function PasswordForm(props: { email: string; onDone: () => void; onLeave: () => void }) {
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
