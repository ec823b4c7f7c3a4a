import { useState } from 'react'
import { signIn } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { PasswordField } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { AuthLayout } from './auth-layout.tsx'
import { useSubmit } from './use-submit.ts'

export function SignInPage(props: { onSignedIn: () => Promise<void> }) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await signIn({ email: email.trim(), password })
    await props.onSignedIn()
  })
  return (
    <AuthLayout title="Sign in" text="Welcome back.">
      <form onSubmit={onSubmit} className="flex flex-col gap-4">
        {problem !== null && <Alert>{problem}</Alert>}
        <Field
          label="E-mail"
          type="email"
          name="email"
          autoComplete="username"
          required
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
        <PasswordField
          label="Password"
          name="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
        <Button type="submit" variant="primary" disabled={busy} className="mt-1 h-10 pointer-coarse:h-11">
          {busy && <Spinner />} Sign in
        </Button>
      </form>
    </AuthLayout>
  )
}
