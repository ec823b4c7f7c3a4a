import type { SignInWays } from '@sandlot/shared/account/sign-in-api'
import { messageOf } from '@sandlot/shared/base/errors'
import { type ReactNode, useState } from 'react'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { LogoMark } from '../ui/logo.tsx'
import { Spinner } from '../ui/spinner.tsx'

/** The frame of the pages before one is signed in. */
export function AuthLayout(props: { title: string; text: ReactNode; children?: ReactNode }) {
  return (
    <div className="h-full overflow-y-auto bg-panel">
      <main className="mx-auto flex min-h-full w-full max-w-[26rem] flex-col justify-center px-5 py-12">
        <div className="flex items-center gap-2.5">
          <LogoMark className="size-8" />
          <span className="text-lg font-semibold tracking-tight">Sandlot</span>
        </div>
        <div className="mt-6 rounded-2xl border border-line bg-raised p-6 shadow-2 sm:p-7">
          <h1 className="text-xl font-semibold tracking-tight [overflow-wrap:anywhere]">{props.title}</h1>
          <div className="mt-1.5 text-sm text-muted [overflow-wrap:anywhere]">{props.text}</div>
          {props.children !== undefined && <div className="mt-6">{props.children}</div>}
        </div>
      </main>
    </div>
  )
}

/** One button for each provider. `invitation`: a token that is accepted by it. */
export function ProviderButtons(props: {
  providers: SignInWays['providers']
  returnTo?: string
  invitation?: string
}) {
  const { returnTo, invitation } = props
  const [leaving, setLeaving] = useState<string | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const leave = (id: string) => {
    setLeaving(id)
    setProblem(null)
    // The spinner stays until the provider's page is there.
    call('beginSignIn', { params: { id }, body: { returnTo, invitation } }).then(
      ({ url }) => location.assign(url),
      (error: unknown) => {
        setLeaving(null)
        setProblem(messageOf(error))
      },
    )
  }
  return (
    <div className="flex flex-col gap-2.5">
      {problem !== null && <Alert>{problem}</Alert>}
      {props.providers.map(({ id, name, ready }) => (
        <div key={id}>
          <Button
            className="h-11 w-full"
            disabled={leaving !== null}
            aria-describedby={ready ? undefined : `not-ready-${id}`}
            onClick={() => leave(id)}
          >
            {leaving === id && <Spinner />}
            <span className="truncate">Continue with {name}</span>
          </Button>
          {!ready && (
            <p id={`not-ready-${id}`} className="mt-1.5 text-xs text-muted">
              {name} didn’t respond last time. You can try again.
            </p>
          )}
        </div>
      ))}
    </div>
  )
}

/** Between the buttons and the form. */
export function Or() {
  return (
    <div className="my-5 flex items-center gap-3 text-xs text-faint" aria-hidden>
      <span className="h-px flex-1 bg-line" /> or <span className="h-px flex-1 bg-line" />
    </div>
  )
}
