/** The first page by sign-in state: set-up, sign-in, or the chat. */
import { me as meSchema, type Me } from '@sandlot/shared/account/api'
import { messageOf } from '@sandlot/shared/base/errors'
import { lazy, Suspense, useCallback, useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import type { SignInWays } from '@sandlot/shared/account/sign-in-api'
import { AuthLayout } from '../auth/auth-layout.tsx'
import { call } from '../net/call.ts'
import { ApiError } from '../net/http.ts'
import { Button } from '../ui/button.tsx'
import { LogoMark } from '../ui/logo.tsx'
import { SignedIn } from './signed-in.tsx'

const loadBeforeSignIn = () => import('../auth/sign-in-page.tsx')
const BeforeSignIn = lazy(loadBeforeSignIn)
// Messages are loaded with the chat at whose address the page opens, and else after the composer.
if (location.pathname.startsWith('/s/')) void import('../chat/transcript/conversation.tsx')

type Who =
  | { state: 'asking' }
  | { state: 'unreachable'; message: string }
  | { state: 'nobody'; setupNeeded: boolean; ways: SignInWays }
  /** `justNow`: by what they did on this page. */
  | { state: 'known'; me: Me; justNow?: true }

/** A password is always a way in, at least for administrators, whatever is known of others. */
const BY_PASSWORD: SignInWays = { local: 'all', providers: [], reset: false }

async function findOut(): Promise<Who> {
  try {
    return { state: 'known', me: meSchema.parse(await call('getMe')) }
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'unauthenticated') {
      return { state: 'unreachable', message: messageOf(error) }
    }
  }
  void loadBeforeSignIn()
  try {
    const ways = call('listWaysIn').catch(() => BY_PASSWORD)
    return { state: 'nobody', setupNeeded: (await call('getSetup')).needed, ways: await ways }
  } catch (error) {
    return { state: 'unreachable', message: messageOf(error) }
  }
}

export function App() {
  const [who, setWho] = useState<Who>({ state: 'asking' })
  const [path, navigate] = useLocation()
  const ask = useCallback(async () => setWho(await findOut()), [])
  const onSignedOut = useCallback(() => {
    // The outline of a chat is not for who is signed out.
    delete document.documentElement.dataset['shell']
    setWho({ state: 'asking' })
    void ask()
  }, [ask])
  useEffect(() => {
    void ask()
  }, [ask])

  // The address follows from who is here. The address of a chat or of settings is kept, so
  // that a sign-in leads back to it.
  const wanted = addressOf(who, path)
  useEffect(() => {
    if (wanted !== path) navigate(wanted + (wanted === '/setup' ? location.search : ''), { replace: true })
  }, [wanted, path, navigate])

  switch (who.state) {
    case 'asking':
      return null
    case 'unreachable':
      return <Unreachable message={who.message} onRetry={() => void ask()} />
    case 'nobody':
      return (
        <Suspense fallback={null}>
          <BeforeSignIn
            path={wanted}
            setupNeeded={who.setupNeeded}
            ways={who.ways}
            onSignedIn={async () => {
              const now = await findOut()
              setWho(now.state === 'known' ? { ...now, justNow: true } : now)
            }}
          />
        </Suspense>
      )
    case 'known':
      if (path === '/invitation' && who.justNow === undefined)
        return <SignedInAlready me={who.me} onSignedOut={onSignedOut} />
      return <SignedIn key={who.me.id} me={who.me} onSignedOut={onSignedOut} onStale={ask} />
  }
}

const BEFORE_SIGN_IN = ['/setup', '/sign-in', '/reset']

/** The address for this sign-in state: `path` itself, wherever it may be. */
function addressOf(who: Who, path: string): string {
  switch (who.state) {
    case 'nobody':
      if (who.setupNeeded) return '/setup'
      return /^\/(?:s|settings|snapshots)\/|^\/(?:invitation|reset)$/.test(path) ? path : '/sign-in'
    case 'known':
      return BEFORE_SIGN_IN.includes(path) || (path === '/invitation' && who.justNow === true) ? '/' : path
    case 'asking':
    case 'unreachable':
      return path
  }
}

/** An invitation makes an account, which is not for who has one. */
function SignedInAlready(props: { me: Me; onSignedOut: () => void }) {
  const [, navigate] = useLocation()
  return (
    <AuthLayout
      title="You’re already signed in"
      text={`This invitation creates a new account, and you’re signed in as ${props.me.email}. Sign out to use it for another address.`}
    >
      <div className="flex flex-col gap-2.5">
        <Button variant="primary" onClick={() => navigate('/', { replace: true })}>
          Go to your chats
        </Button>
        <Button onClick={() => void call('signOut').finally(props.onSignedOut)}>Sign out</Button>
      </div>
    </AuthLayout>
  )
}

function Unreachable(props: { message: string; onRetry: () => void }) {
  return (
    <main className="flex h-full flex-col items-center justify-center gap-3 px-6 text-center">
      <LogoMark className="size-9" />
      <h1 className="mt-2 text-lg font-semibold">Can’t reach Sandlot</h1>
      <p className="max-w-sm text-sm text-muted">{props.message}</p>
      <Button className="mt-2" onClick={props.onRetry}>
        Try again
      </Button>
    </main>
  )
}
