import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/account/api'
import { useState } from 'react'
import { useSubmit } from '../../auth/use-submit.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Field } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'

/** A new account, whose owner changes the first password. */
export function AddPersonForm(props: { onDone: () => void; onLeave: () => void }) {
  const [form, setForm] = useState({ name: '', email: '', password: '' })
  const [isAdministrator, setIsAdministrator] = useState(false)
  const { busy, problem, onSubmit } = useSubmit(async () => {
    const { name, email, password } = form
    const role = isAdministrator ? 'admin' : 'member'
    await call('addUser', { body: { name: name.trim(), email: email.trim(), password, role } })
    props.onDone()
  })
  const field = (name: keyof typeof form) => ({
    name: `new-person-${name}`,
    value: form[name],
    required: true,
    autoComplete: 'off',
    onChange: (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value }),
  })
  return (
    <form
      aria-label="Add a person"
      onSubmit={onSubmit}
      className="flex flex-col gap-4 rounded-lg border border-line p-3"
    >
      {problem !== null && <Alert>{problem}</Alert>}
      <Field {...field('name')} label="Name" maxLength={100} />
      <Field {...field('email')} label="E-mail" type="email" />
      <Field
        {...field('password')}
        label="First password"
        autoComplete="new-password"
        spellCheck={false}
        minLength={MIN_PASSWORD_CHARS}
        maxLength={MAX_PASSWORD_CHARS}
        hint={`At least ${MIN_PASSWORD_CHARS} characters. Share it with them; they can change it in their settings.`}
      />
      <label className="flex items-center gap-2.5 text-sm pointer-coarse:min-h-11">
        <input
          type="checkbox"
          className="accent-accent"
          checked={isAdministrator}
          onChange={(event) => setIsAdministrator(event.target.checked)}
        />
        Administrator
      </label>
      <div className="flex justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={busy}>
          {busy && <Spinner />} Add
        </Button>
      </div>
    </form>
  )
}
