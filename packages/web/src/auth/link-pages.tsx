/** Pages that a link with a token leads to: the first set-up, an invitation, a new password. */
import { MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS } from '@sandlot/shared/account/api'
import { messageOf } from '@sandlot/shared/base/errors'
import type { InvitationOffer, SignInWays } from '@sandlot/shared/account/sign-in-api'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { formatDate } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { PasswordField } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { AuthLayout, Or, ProviderButtons } from './auth-layout.tsx'
import { useSubmit } from './use-submit.ts'

const NEW_PASSWORD = {
  label: 'Password',
  name: 'password',
  autoComplete: 'new-password',
  minLength: MIN_PASSWORD_CHARS,
  maxLength: MAX_PASSWORD_CHARS,
  required: true,
  hint: `At least ${MIN_PASSWORD_CHARS} characters.`,
} as const

/** The first visit: the one-time token from the terminal makes the administrator. */
export function SetupPage(props: { token: string; onSignedIn: () => Promise<void> }) {
  const [form, setForm] = useState({ token: props.token, name: '', email: '', password: '' })
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('setUp', {
      body: { ...form, token: form.token.trim(), name: form.name.trim(), email: form.email.trim() },
    })
    await props.onSignedIn()
  })
  const field = (name: keyof typeof form) => ({
    name,
    value: form[name],
    required: true,
    onChange: (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value }),
  })
  return (
    <AuthLayout title="Set up Sandlot" text="Create the first account. It will be the administrator.">
      <form onSubmit={onSubmit} className="flex flex-col gap-4">
        {problem !== null && <Alert>{problem}</Alert>}
        {props.token === '' && (
          <Field
            {...field('token')}
            label="Setup token"
            autoComplete="off"
            spellCheck={false}
            hint="Find it in the link that Sandlot printed when it started."
          />
        )}
        <Field {...field('name')} label="Your name" autoComplete="name" maxLength={100} />
        <Field {...field('email')} label="E-mail" type="email" autoComplete="username" />
        <PasswordField {...NEW_PASSWORD} {...field('password')} />
        <Button type="submit" variant="primary" disabled={busy} className="mt-1 h-10 pointer-coarse:h-11">
          {busy && <Spinner />} Create account
        </Button>
      </form>
    </AuthLayout>
  )
}

const AS: Record<InvitationOffer['role'], string> = {
  admin: 'an administrator',
  member: 'a member',
  guest: 'a guest who takes part in shared chats',
}

/** The link of an administrator, for a person who has no account yet. */
export function InvitationPage(props: { token: string; ways: SignInWays; onSignedIn: () => Promise<void> }) {
  const { token, ways } = props
  const [offer, setOffer] = useState<InvitationOffer | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    call('showInvitation', { body: { token } }).then(setOffer, (error: unknown) =>
      setProblem(messageOf(error)),
    )
  }, [token])
  if (problem !== null)
    return (
      <AuthLayout title="This invitation can’t be used" text={problem}>
        <ToSignIn />
      </AuthLayout>
    )
  if (offer === null) return null
  const { providers, local } = ways
  // The form makes an account with a password, which must be good for a sign-in afterwards.
  const byPassword = local === 'all' || offer.role === 'admin' || providers.length === 0
  return (
    <AuthLayout
      title={`${offer.createdBy} invites you`}
      text={`You’ll join as ${AS[offer.role]}. Valid until ${formatDate(offer.expiresAt)}.`}
    >
      {providers.length > 0 && <ProviderButtons providers={providers} invitation={token} />}
      {providers.length > 0 && byPassword && <Or />}
      {byPassword && <AcceptForm token={token} email={offer.email} onSignedIn={props.onSignedIn} />}
    </AuthLayout>
  )
}

function AcceptForm(props: { token: string; email: string | null; onSignedIn: () => Promise<void> }) {
  const [form, setForm] = useState({ name: '', email: props.email ?? '', password: '' })
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('acceptInvitation', {
      body: {
        ...form,
        token: props.token,
        name: form.name.trim(),
        email: form.email.trim(),
      },
    })
    await props.onSignedIn()
  })
  const field = (name: keyof typeof form) => ({
    name,
    value: form[name],
    required: true,
    onChange: (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value }),
  })
  return (
    <form onSubmit={onSubmit} className="flex flex-col gap-4">
      {problem !== null && <Alert>{problem}</Alert>}
      <Field {...field('name')} label="Your name" autoComplete="name" maxLength={100} />
      <Field
        {...field('email')}
        label="E-mail"
        type="email"
        autoComplete="username"
        readOnly={props.email !== null}
        hint={props.email === null ? undefined : 'The invitation is for this address.'}
      />
      <PasswordField {...NEW_PASSWORD} {...field('password')} />
      <Button type="submit" variant="primary" disabled={busy} className="mt-1 h-10 pointer-coarse:h-11">
        {busy && <Spinner />} Create account
      </Button>
    </form>
  )
}

/** From the mail that was asked for with “Forgot your password?”. */
export function ResetPage(props: { token: string }) {
  const [password, setPassword] = useState('')
  const [done, setDone] = useState(false)
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('finishReset', { body: { token: props.token, password } })
    setDone(true)
  })
  if (done)
    return (
      <AuthLayout
        title="Your password is changed"
        text="You’ve been signed out everywhere. Sign in with your new password."
      >
        <ToSignIn />
      </AuthLayout>
    )
  return (
    <AuthLayout title="A new password" text="It takes effect immediately and signs you out everywhere.">
      <form onSubmit={onSubmit} className="flex flex-col gap-4">
        {problem !== null && <Alert>{problem}</Alert>}
        <PasswordField
          {...NEW_PASSWORD}
          label="New password"
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
        <Button type="submit" variant="primary" disabled={busy} className="mt-1 h-10 pointer-coarse:h-11">
          {busy && <Spinner />} Change password
        </Button>
      </form>
    </AuthLayout>
  )
}

function ToSignIn() {
  return (
    <Link
      href="/sign-in"
      className="flex h-10 items-center justify-center rounded-lg border border-line-strong bg-raised text-sm font-medium shadow-1 hover:bg-hover pointer-coarse:h-11"
    >
      Go to sign in
    </Link>
  )
}
