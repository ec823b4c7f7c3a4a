/** Who is here decides what is shown: set up, sign in, or the chat. */
import type { Me } from '@sandlot/shared/api'
import { messageOf } from '@sandlot/shared/errors'
import { lazy, Suspense, useCallback, useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { SetupPage, SignInPage } from './auth/auth-pages.tsx'
import { ApiError, fetchMe, fetchSetupNeeded } from './net/http.ts'
import { Button } from './ui/button.tsx'
import { LogoMark } from './ui/logo.tsx'

// The pages before it stay light, and it comes while the person types.
const SignedIn = lazy(() => import('./signed-in.tsx'))

type Who =
  | { state: 'asking' }
  | { state: 'unreachable'; message: string }
  | { state: 'nobody'; setupNeeded: boolean }
  | { state: 'known'; me: Me }

async function findOut(): Promise<Who> {
  try {
    return { state: 'known', me: await fetchMe() }
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'unauthenticated') {
      return { state: 'unreachable', message: messageOf(error) }
    }
  }
  try {
    return { state: 'nobody', setupNeeded: await fetchSetupNeeded() }
  } catch (error) {
    return { state: 'unreachable', message: messageOf(error) }
  }
}

export function App() {
  const [who, setWho] = useState<Who>({ state: 'asking' })
  const [path, navigate] = useLocation()
  const ask = useCallback(async () => setWho(await findOut()), [])
  const onSignedOut = useCallback(() => setWho({ state: 'nobody', setupNeeded: false }), [])
  useEffect(() => {
    void ask()
  }, [ask])

  // The address follows from who is here. The address of a chat or of settings is kept, so
  // that a sign-in leads back to it.
  const elsewhere = who.state === 'known' ? path === '/setup' || path === '/sign-in' : false
  const wanted =
    who.state === 'nobody'
      ? who.setupNeeded
        ? '/setup'
        : /^\/(?:s|settings)\//.test(path)
          ? path
          : '/sign-in'
      : elsewhere
        ? '/'
        : path
  useEffect(() => {
    if (wanted !== path) navigate(wanted + (wanted === '/setup' ? location.search : ''), { replace: true })
  }, [wanted, path, navigate])

  switch (who.state) {
    case 'asking':
      return null
    case 'unreachable':
      return <Unreachable message={who.message} onRetry={() => void ask()} />
    case 'nobody':
      return who.setupNeeded ? (
        <SetupPage token={new URLSearchParams(location.search).get('token') ?? ''} onSignedIn={ask} />
      ) : (
        <SignInPage onSignedIn={ask} />
      )
    case 'known':
      return (
        <Suspense fallback={null}>
          <SignedIn key={who.me.id} me={who.me} onSignedOut={onSignedOut} onStale={ask} />
        </Suspense>
      )
  }
}

function Unreachable(props: { message: string; onRetry: () => void }) {
  return (
    <main className="flex h-full flex-col items-center justify-center gap-3 px-6 text-center">
      <LogoMark className="size-9" />
      <h1 className="mt-2 text-lg font-semibold">Sandlot cannot be reached</h1>
      <p className="max-w-sm text-sm text-muted">{props.message}</p>
      <Button className="mt-2" onClick={props.onRetry}>
        Try again
      </Button>
    </main>
  )
}
