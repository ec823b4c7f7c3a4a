import type { SignInWays } from '@sandlot/shared/account/sign-in-api'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { PasswordField } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { AuthLayout, Or, ProviderButtons } from './auth-layout.tsx'
import { useSubmit } from './use-submit.ts'
import { InvitationPage, ResetPage, SetupPage } from './link-pages.tsx'

type Step = { at: 'ways' } | { at: 'code' } | { at: 'forgotten' } | { at: 'mailed'; email: string }

/** Providers, the local form, the second step, and the way to a new password. */
function SignInPage(props: { ways: SignInWays; onSignedIn: () => Promise<void> }) {
  const { ways, onSignedIn } = props
  const [step, setStep] = useState<Step>({ at: 'ways' })
  const [email, setEmail] = useState('')
  const back = () => setStep({ at: 'ways' })
  switch (step.at) {
    case 'ways':
      return (
        <Ways
          ways={ways}
          email={email}
          onEmail={setEmail}
          onCode={() => setStep({ at: 'code' })}
          onForgotten={() => setStep({ at: 'forgotten' })}
          onSignedIn={onSignedIn}
        />
      )
    case 'code':
      return <Code onSignedIn={onSignedIn} onBack={back} />
    case 'forgotten':
      return (
        <Forgotten
          email={email}
          onEmail={setEmail}
          onMailed={() => setStep({ at: 'mailed', email: email.trim() })}
          onBack={back}
        />
      )
    case 'mailed':
      return (
        <AuthLayout
          title="Check your e-mail"
          text={`If ${step.email} has an account here, we’ve sent a link to reset its password. It expires soon.`}
        >
          <Button className="w-full" onClick={back}>
            Back to sign in
          </Button>
        </AuthLayout>
      )
  }
}

function Ways(props: {
  ways: SignInWays
  email: string
  onEmail: (email: string) => void
  onCode: () => void
  onForgotten: () => void
  onSignedIn: () => Promise<void>
}) {
  const { providers, local, reset } = props.ways
  // A form for administrators alone is folded away for everybody else.
  const [formShown, setFormShown] = useState(local === 'all' || providers.length === 0)
  const cameBack = useProviderProblem()
  return (
    <AuthLayout title="Sign in" text="Welcome back.">
      {cameBack !== null && (
        <div className="mb-4">
          <Alert>{cameBack}</Alert>
        </div>
      )}
      {providers.length > 0 && (
        <ProviderButtons
          providers={providers}
          returnTo={location.pathname === '/sign-in' ? '/' : location.pathname}
        />
      )}
      {formShown ? (
        <>
          {providers.length > 0 && <Or />}
          <PasswordForm
            email={props.email}
            autoFocus={local === 'admins' && providers.length > 0}
            onEmail={props.onEmail}
            onCode={props.onCode}
            onSignedIn={props.onSignedIn}
          />
          {reset && <QuietButton onClick={props.onForgotten}>Forgot your password?</QuietButton>}
        </>
      ) : (
        <QuietButton onClick={() => setFormShown(true)}>Sign in with a password</QuietButton>
      )}
    </AuthLayout>
  )
}

function PasswordForm(props: {
  email: string
  autoFocus: boolean
  onEmail: (email: string) => void
  onCode: () => void
  onSignedIn: () => Promise<void>
}) {
  const [password, setPassword] = useState('')
  const { busy, problem, onSubmit } = useSubmit(async () => {
    const answer = await call('signIn', { body: { email: props.email.trim(), password } })
    if ('secondFactor' in answer) props.onCode()
    else await props.onSignedIn()
  })
  return (
    <form onSubmit={onSubmit} className="flex flex-col gap-4">
      {problem !== null && <Alert>{problem}</Alert>}
      <Field
        label="E-mail"
        type="email"
        name="email"
        autoComplete="username"
        required
        autoFocus={props.autoFocus}
        value={props.email}
        onChange={(event) => props.onEmail(event.target.value)}
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
  )
}

function QuietButton(props: { onClick: () => void; children: ReactNode }) {
  return (
    <Button
      variant="ghost"
      size="sm"
      className="mt-4 w-full text-muted underline-offset-2 hover:underline"
      onClick={props.onClick}
    >
      {props.children}
    </Button>
  )
}

/** The error of a provider's sign-in from which the browser has just returned. */
function useProviderProblem(): string | null {
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    const id = new URLSearchParams(location.search).get('problem')
    if (id === null) return
    call('getSignInProblem', { params: { id } }).then(
      ({ message }) => setProblem(message),
      () =>
        // Kept for some minutes only.
        setProblem('Sign-in failed. Try again.'),
    )
  }, [])
  return problem
}

function Code(props: { onSignedIn: () => Promise<void>; onBack: () => void }) {
  const [code, setCode] = useState('')
  const form = useRef<HTMLFormElement>(null)
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('signInWithCode', { body: { code: code.replaceAll(' ', '') } })
    await props.onSignedIn()
  })
  return (
    <AuthLayout title="Two-step sign-in" text="The six-digit code from your authenticator app.">
      <form ref={form} onSubmit={onSubmit} className="flex flex-col gap-4">
        {problem !== null && <Alert>{problem}</Alert>}
        <Field
          label="Code"
          name="code"
          autoComplete="one-time-code"
          autoCapitalize="off"
          spellCheck={false}
          required
          autoFocus
          maxLength={50}
          value={code}
          hint="No app? Use a recovery code."
          onChange={(event) => setCode(event.target.value)}
        />
        <Button type="submit" variant="primary" disabled={busy} className="mt-1 h-10 pointer-coarse:h-11">
          {busy && <Spinner />} Continue
        </Button>
      </form>
      <QuietButton onClick={props.onBack}>Start again</QuietButton>
    </AuthLayout>
  )
}

function Forgotten(props: {
  email: string
  onEmail: (email: string) => void
  onMailed: () => void
  onBack: () => void
}) {
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('beginReset', { body: { email: props.email.trim() } })
    props.onMailed()
  })
  return (
    <AuthLayout title="A new password" text="We’ll e-mail you a link.">
      <form onSubmit={onSubmit} className="flex flex-col gap-4">
        {problem !== null && <Alert>{problem}</Alert>}
        <Field
          label="E-mail"
          type="email"
          name="email"
          autoComplete="username"
          required
          autoFocus
          value={props.email}
          onChange={(event) => props.onEmail(event.target.value)}
        />
        <Button type="submit" variant="primary" disabled={busy} className="mt-1 h-10 pointer-coarse:h-11">
          {busy && <Spinner />} Send the link
        </Button>
      </form>
      <QuietButton onClick={props.onBack}>Back to sign in</QuietButton>
    </AuthLayout>
  )
}

/** The page for a person who is not signed in: set-up, sign-in, or that of a link. */
export default function BeforeSignIn(props: {
  path: string
  setupNeeded: boolean
  ways: SignInWays
  onSignedIn: () => Promise<void>
}) {
  const { path, ways, onSignedIn } = props
  const token = new URLSearchParams(location.search).get('token') ?? ''
  if (props.setupNeeded) return <SetupPage token={token} onSignedIn={onSignedIn} />
  if (path === '/invitation') return <InvitationPage token={token} ways={ways} onSignedIn={onSignedIn} />
  if (path === '/reset') return <ResetPage token={token} />
  return <SignInPage ways={ways} onSignedIn={onSignedIn} />
}
