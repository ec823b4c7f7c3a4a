import { type ReactNode, useState } from 'react'
import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/api'
import { LogoMark } from '../ui/logo.tsx'
import { setUp, signIn } from '../net/http.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { PasswordField } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { useSubmit } from './use-submit.ts'

/** The frame of the pages before one is signed in. */
function AuthLayout(props: { title: string; text: ReactNode; children: ReactNode }) {
  return (
    <div className="h-full overflow-y-auto bg-panel">
      <main className="mx-auto flex min-h-full w-full max-w-[26rem] flex-col justify-center px-5 py-12">
        <div className="flex items-center gap-2.5">
          <LogoMark className="size-8" />
          <span className="text-lg font-semibold tracking-tight">Sandlot</span>
        </div>
        <div className="mt-6 rounded-2xl border border-line bg-raised p-6 shadow-2 sm:p-7">
          <h1 className="text-xl font-semibold tracking-tight">{props.title}</h1>
          <div className="mt-1.5 text-sm text-muted">{props.text}</div>
          <div className="mt-6">{props.children}</div>
        </div>
      </main>
    </div>
  )
}

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

/** The first visit: the one-time token from the terminal makes the administrator. */
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
