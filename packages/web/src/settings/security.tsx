/** Sign-in methods of the signed-in person, and their active sessions. */
import type {
  AccountWays,
  NewSecondFactor,
  SignInEntry,
  SignInWays,
} from '@sandlot/shared/account/sign-in-api'
import { messageOf } from '@sandlot/shared/base/errors'
import { KeyRound, Link2, ShieldCheck } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { useSubmit } from '../auth/use-submit.ts'
import { useChat } from '../state/chat-context.ts'
import { formatDate } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy-button.tsx'
import { Field } from '../ui/field.tsx'
import { PasswordField, PasswordOwner } from '../ui/password-field.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { Password } from './account.tsx'
import { RevocableRow } from './revocable-row.tsx'
import { Part } from './part.tsx'

interface Known {
  account: AccountWays
  ways: SignInWays
}

export function Security() {
  const {
    data: known,
    problem,
    busy,
    reload,
    change,
  } = useResource<Known>('ways', async (signal) => {
    const [account, ways] = await Promise.all([call('listWays', { signal }), call('listWaysIn', { signal })])
    return { account, ways }
  })
  const linkProblem = useLinkProblem()
  return (
    <>
      {linkProblem !== null && <Alert>{linkProblem}</Alert>}
      {problem !== null && <Alert>{problem}</Alert>}
      {known?.account.password !== false && <Password />}
      {known !== null && <SecondFactor account={known.account} onChanged={reload} />}
      {known !== null && known.ways.providers.length + known.account.providers.length > 0 && (
        <Providers
          account={known.account}
          ways={known.ways}
          busy={busy}
          onChange={(work) => void change(work)}
        />
      )}
      {known === null && problem === null && <Spinner className="size-4 text-faint" />}
      {(known !== null || problem !== null) && <SignIns />}
    </>
  )
}

function SignIns() {
  const { data, problem, busy, change } = useResource('sign-ins', (signal) => call('listSignIns', { signal }))
  const signIns = data?.signIns ?? []
  const end = (id?: string) =>
    void change(() => (id === undefined ? call('endOtherSignIns') : call('endSignIn', { params: { id } })))
  return (
    <Part
      title="Where you are signed in"
      text="Sign out anything you don’t recognise, then change your password."
    >
      {problem !== null && <Alert>{problem}</Alert>}
      {signIns.length > 0 && (
        <ul aria-label="Your sign-ins" className="divide-y divide-line rounded-lg border border-line">
          {signIns.map((one) => (
            <SignInLine key={one.id} signIn={one} busy={busy} onEnd={() => end(one.id)} />
          ))}
        </ul>
      )}
      {signIns.filter(({ current }) => !current).length > 1 && (
        <Button size="sm" className="self-start" disabled={busy} onClick={() => end()}>
          Sign out everywhere else
        </Button>
      )}
    </Part>
  )
}

/** Why a provider that was to be linked was not, from which the browser has just come back. */
function useLinkProblem(): string | null {
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    const id = new URLSearchParams(location.search).get('problem')
    if (id !== null)
      call('getSignInProblem', { params: { id } }).then(
        ({ message }) => setProblem(message),
        (error: unknown) => setProblem(messageOf(error)),
      )
  }, [])
  return problem
}

function SignInLine(props: { signIn: SignInEntry; busy: boolean; onEnd: () => void }) {
  const { current, device, address, provider, since, lastUsedAt } = props.signIn
  const title = <span className="block truncate text-sm font-medium">{device}</span>
  const detail = [
    ...(current ? ['This browser'] : [`last used ${formatDate(lastUsedAt)}`]),
    `since ${formatDate(since)}`,
    ...(address === null ? [] : [address]),
    provider === null ? 'by password' : `through ${provider}`,
  ].join(' · ')
  if (current)
    return (
      <li className="py-2 pr-2 pl-3">
        {title}
        <span className="block text-xs text-muted">{detail}</span>
      </li>
    )
  return (
    <RevocableRow
      name={device}
      title={title}
      detail={detail}
      act="Sign out"
      label={`Sign out: ${device}`}
      busy={props.busy}
      onAct={props.onEnd}
    />
  )
}

function Providers(props: {
  account: AccountWays
  ways: SignInWays
  busy: boolean
  onChange: (work: () => Promise<void>) => void
}) {
  const { account, ways } = props
  const [linking, setLinking] = useState<string | null>(null)
  const linked = new Set(account.providers.map(({ id }) => id))
  const open = ways.providers.filter(({ id }) => !linked.has(id))
  return (
    <Part title="Providers" text="Other accounts you can sign in with.">
      {account.providers.length > 0 && (
        <ul aria-label="Linked providers" className="divide-y divide-line rounded-lg border border-line">
          {account.providers.map(({ id, name, linkedAt }) => (
            <RevocableRow
              key={id}
              name={name}
              title={<span className="block truncate text-sm font-medium">{name}</span>}
              detail={`linked ${formatDate(linkedAt)}`}
              act="Unlink"
              busy={props.busy}
              onAct={() => props.onChange(() => call('unlinkProvider', { params: { id } }))}
            />
          ))}
        </ul>
      )}
      {open.map(({ id, name }) =>
        linking === id ? (
          <LinkForm
            key={id}
            id={id}
            name={name}
            withPassword={account.password}
            onLeave={() => setLinking(null)}
          />
        ) : (
          <Button key={id} size="sm" className="self-start" onClick={() => setLinking(id)}>
            <Link2 className="size-3.5" aria-hidden /> Link {name}
          </Button>
        ),
      )}
    </Part>
  )
}

function LinkForm(props: { id: string; name: string; withPassword: boolean; onLeave: () => void }) {
  const { me } = useChat()
  const [password, setPassword] = useState('')
  const { busy, problem, onSubmit } = useSubmit(async () => {
    const { url } = await call('linkProvider', {
      params: { id: props.id },
      body: {
        returnTo: '/settings/security',
        password: props.withPassword ? password : undefined,
      },
    })
    location.assign(url)
  })
  return (
    <form
      aria-label={`Link ${props.name}`}
      onSubmit={onSubmit}
      className="flex flex-col gap-4 rounded-lg border border-line p-3"
    >
      {problem !== null && <Alert>{problem}</Alert>}
      <p className="text-sm text-muted">You’ll go to {props.name} now, then return here.</p>
      {props.withPassword && (
        <>
          <PasswordOwner email={me.email} />
          <PasswordField
            label="Your password"
            autoComplete="current-password"
            required
            autoFocus
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        </>
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={busy}>
          {busy && <Spinner />} Continue
        </Button>
      </div>
    </form>
  )
}

type Step = { at: 'rest' } | { at: 'password' } | { at: 'scan' | 'codes'; made: NewSecondFactor }

function SecondFactor(props: { account: AccountWays; onChanged: () => Promise<void> }) {
  const { password, secondFactor } = props.account
  const [step, setStep] = useState<Step>({ at: 'rest' })
  const rest = () => setStep({ at: 'rest' })
  return (
    <Part title="Two-step sign-in" text="A code from an authenticator app, in addition to your password.">
      {!password ? (
        <p className="text-sm text-muted">You sign in through a provider. Set up two-step sign-in there.</p>
      ) : step.at === 'password' ? (
        <PasswordStep
          on={secondFactor}
          onLeave={rest}
          onMade={(made) => setStep({ at: 'scan', made })}
          onRemoved={async () => {
            rest()
            await props.onChanged()
          }}
        />
      ) : step.at === 'scan' ? (
        <ScanStep
          made={step.made}
          onLeave={rest}
          onDone={async () => {
            setStep({ at: 'codes', made: step.made })
            await props.onChanged()
          }}
        />
      ) : step.at === 'codes' ? (
        <CodesStep codes={step.made.recoveryCodes} onDone={rest} />
      ) : (
        <div className="flex flex-wrap items-center gap-3">
          {secondFactor && (
            <span className="flex items-center gap-1.5 text-sm font-medium text-well">
              <ShieldCheck className="size-4" aria-hidden /> On
            </span>
          )}
          <Button
            size="sm"
            variant={secondFactor ? 'danger' : 'secondary'}
            onClick={() => setStep({ at: 'password' })}
          >
            {!secondFactor && <KeyRound className="size-3.5" aria-hidden />}
            {secondFactor ? 'Turn off' : 'Set up'}
          </Button>
        </div>
      )}
    </Part>
  )
}

const BOX = 'flex flex-col gap-4 rounded-lg border border-line p-3'

function PasswordStep(props: {
  /** True if it is on, and is to be turned off. */
  on: boolean
  onMade: (made: NewSecondFactor) => void
  onRemoved: () => Promise<void>
  onLeave: () => void
}) {
  const { me } = useChat()
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const { busy, problem, onSubmit } = useSubmit(async () => {
    if (!props.on) return props.onMade(await call('beginSecondFactor', { body: { password } }))
    await call('disableSecondFactor', { body: { password, code } })
    await props.onRemoved()
  })
  return (
    <form
      aria-label={props.on ? 'Turn off two-step sign-in' : 'Set up two-step sign-in'}
      onSubmit={onSubmit}
      className={BOX}
    >
      {problem !== null && <Alert>{problem}</Alert>}
      <PasswordOwner email={me.email} />
      <PasswordField
        label="Your password"
        autoComplete="current-password"
        required
        autoFocus
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      {props.on && (
        <Field
          label="Code"
          name="code"
          autoComplete="one-time-code"
          autoCapitalize="off"
          spellCheck={false}
          required
          maxLength={50}
          value={code}
          hint="From your authenticator app, or a recovery code."
          onChange={(event) => setCode(event.target.value)}
        />
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button type="submit" variant={props.on ? 'danger' : 'primary'} disabled={busy}>
          {busy && <Spinner />} {props.on ? 'Turn off' : 'Continue'}
        </Button>
      </div>
    </form>
  )
}

function ScanStep(props: { made: NewSecondFactor; onDone: () => Promise<void>; onLeave: () => void }) {
  const { uri } = props.made
  const [code, setCode] = useState('')
  const { busy, problem, onSubmit } = useSubmit(async () => {
    await call('confirmSecondFactor', { body: { code: code.replaceAll(' ', '') } })
    await props.onDone()
  })
  const secret = new URL(uri).searchParams.get('secret') ?? ''
  return (
    <form aria-label="Set up two-step sign-in" onSubmit={onSubmit} className={BOX}>
      <div className="flex flex-wrap gap-5">
        <div className="size-44 shrink-0 rounded-lg bg-white p-1.5">
          <QrCode text={uri} label="QR code for your authenticator app" />
        </div>
        <div className="flex min-w-0 flex-1 basis-56 flex-col gap-4">
          <p className="text-sm">Scan this with your authenticator app, then enter the code it shows.</p>
          <div>
            <p className="text-xs text-muted">Can’t scan? Enter this in the app:</p>
            <div className="mt-1 flex items-center gap-1">
              <code className="min-w-0 text-xs [overflow-wrap:anywhere]">
                {secret.replaceAll(/(.{4})(?=.)/g, '$1 ')}
              </code>
              <CopyButton text={secret} what="secret" quiet />
            </div>
          </div>
        </div>
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      <Field
        label="Code"
        name="code"
        autoComplete="one-time-code"
        inputMode="numeric"
        required
        autoFocus
        maxLength={10}
        value={code}
        onChange={(event) => setCode(event.target.value)}
      />
      <div className="flex justify-end gap-2">
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={busy}>
          {busy && <Spinner />} Turn on
        </Button>
      </div>
    </form>
  )
}

/** Drawn here: no other page gets what it holds. */
function QrCode(props: { text: string; label: string }) {
  const { text } = props
  const [rows, setRows] = useState<boolean[][]>([])
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    import('qr').then(
      ({ default: encode }) => setRows(encode(text, 'raw', { ecc: 'medium', border: 1 })),
      (error: unknown) => setProblem(messageOf(error)),
    )
  }, [text])
  if (problem !== null) return <p className="text-xs text-black">Couldn’t draw the code: {problem}</p>
  const dots = rows.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : [])))
  return (
    <svg
      role="img"
      aria-label={props.label}
      viewBox={`0 0 ${rows.length} ${rows.length}`}
      shapeRendering="crispEdges"
      className="size-full"
    >
      <path d={dots.join('')} fill="black" />
    </svg>
  )
}

function CodesStep(props: { codes: readonly string[]; onDone: () => void }) {
  const text = props.codes.join('\n')
  return (
    <div role="status" className="rounded-lg border border-waiting-line bg-waiting-wash p-3">
      <p className="text-sm font-medium">
        It’s on. Save these recovery codes now; they won’t be shown again.
      </p>
      <p className="mt-1 text-sm text-muted">
        Each works once if you lose your phone. Store them in a password manager.
      </p>
      <ul
        aria-label="Recovery codes"
        className="mt-3 grid grid-cols-2 gap-x-6 gap-y-1 rounded-md border border-line bg-raised p-3 font-mono text-sm sm:grid-cols-3"
      >
        {props.codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <div className="mt-3 flex flex-wrap items-center gap-2">
        <CopyButton text={text} what="recovery codes" />
        <Button size="sm" variant="ghost" onClick={() => saveText('sandlot-recovery-codes.txt', text)}>
          Download
        </Button>
        <span className="flex-1" />
        <Button size="sm" variant="primary" onClick={props.onDone}>
          I’ve saved them
        </Button>
      </div>
    </div>
  )
}

/** Have the browser save this text as a file. */
function saveText(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain;charset=utf-8' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The download has begun by then; the bytes need not be kept.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
