import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/api'
import { useState } from 'react'
import { setUp } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { PasswordField } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { AuthLayout } from './auth-layout.tsx'
import { useSubmit } from './use-submit.ts'

/** The first visit: whoever has the one-time token from the terminal becomes the administrator. */
export function SetupPage(props: { token: string; onSignedIn: () => Promise<void> }) {
  const [form, setForm] = useState({ token: props.token, name: '', email: '', password: '' })
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await setUp({ ...form, token: form.token.trim(), name: form.name.trim(), email: form.email.trim() })
    await props.onSignedIn()
  })
  const field = (name: keyof typeof form) => ({
    name,
    value: form[name],
    required: true,
    onChange: (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value }),
  })
  return (
    <AuthLayout
      title="Set up Sandlot"
      text="This first account is the administrator’s. It lives on this machine only."
    >
      <form onSubmit={onSubmit} className="flex flex-col gap-4">
        {problem !== null && <Alert>{problem}</Alert>}
        {props.token === '' && (
          <Field
            {...field('token')}
            label="Setup token"
            autoComplete="off"
            spellCheck={false}
            hint="It is in the link that Sandlot printed in its terminal when it started."
          />
        )}
        <Field {...field('name')} label="Your name" autoComplete="name" maxLength={100} />
        <Field {...field('email')} label="E-mail" type="email" autoComplete="username" />
        <PasswordField
          {...field('password')}
          label="Password"
          autoComplete="new-password"
          minLength={MIN_PASSWORD_CHARS}
          maxLength={MAX_PASSWORD_CHARS}
          hint={`At least ${MIN_PASSWORD_CHARS} characters.`}
        />
        <Button type="submit" variant="primary" disabled={busy} className="mt-1 h-10 pointer-coarse:h-11">
          {busy && <Spinner />} Create account
        </Button>
      </form>
    </AuthLayout>
  )
}
