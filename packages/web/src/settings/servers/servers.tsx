/** MCP servers: a person's own, and for administrators those of the deployment. */
import {
  type ServerScope,
  type ServerStateView,
  type ServersView,
  type ServerView,
  serversView,
} from '@sandlot/shared/admin/mcp-servers'
import { Plus } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { Link } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { call } from '../../net/call.ts'
import { Alert, Hint } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { Part } from '../part.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'
import { SERVER_ACTIONS } from './server-actions.ts'
import { ServerForm } from './server-form.tsx'
import { AddedLine, GivenLine } from './server-line.tsx'

export function Servers({ of }: { of: ServerScope }) {
  const servers = useServers(of)
  const { view, problem } = servers
  if (view === null)
    return problem === null ? (
      <p role="status" className="flex items-center gap-2 text-sm text-muted">
        <Spinner /> Loading…
      </p>
    ) : (
      <Alert>{problem}</Alert>
    )
  return (
    <div className="flex flex-col gap-10">
      {problem !== null && <Alert>{problem}</Alert>}
      {servers.unanswered !== null && <Alert>{servers.unanswered}</Alert>}
      <AddedPart of={of} view={view} servers={servers} />
      {view.given.length > 0 && <GivenPart of={of} view={view} servers={servers} />}
    </div>
  )
}

type ServerActs = Omit<ReturnType<typeof useServers>, 'view'>

interface PartProps {
  of: ServerScope
  view: ServersView
  servers: ServerActs
}

/** `unanswered`: the problem of the last test. */
function useServers(of: ServerScope) {
  const names = SERVER_ACTIONS[of]
  /** Ids of those that are asked now. */
  const [testing, setTesting] = useState<ReadonlySet<string>>(new Set())
  /** A server that hangs keeps nothing else waiting. */
  const trials = useAttempt()

  const test = (id: string) =>
    trials.attempt(async () => {
      setTesting((now) => new Set([...now, id]))
      try {
        const { status } = await call(names.test, { params: { id } })
        update((now) => withStatus(now, id, status))
      } finally {
        setTesting((now) => new Set([...now].filter((one) => one !== id)))
      }
    }, 'again')
  const {
    data: view,
    problem,
    busy,
    ...resource
  } = useResource(of, async (signal) => {
    const now = serversView.parse(await call(names.list, { signal }))
    // A program is started by a prompt, or by hand: it would start the sandbox.
    const asked = [
      ...now.servers.filter(({ connection }) => connection.kind === 'http'),
      ...now.given.filter(({ place }) => place.startsWith('http')),
    ].filter(({ status }) => status.state !== 'off' && status.state !== 'ready')
    for (const { id } of asked) void test(id)
    return now
  })
  const { update } = resource
  useEffect(() => {
    const connected = takeConnected()
    if (connected !== null) showToast(`${connected} connected.`)
  }, [of])

  /** Shown at once, and taken back where it is refused. */
  const change = (server: ServerView, to: Partial<Pick<ServerView, 'enabled' | 'off' | 'readOnly'>>) =>
    resource.change(async () => {
      const { id, status: _status, hasClientSecret: _secret, ...rest } = server
      update((now) => withServer(now, { ...server, ...to }))
      try {
        const body = { ...rest, ...to }
        return serversView.parse(await call(names.change, { params: { id }, body }))
      } catch (error) {
        update((now) => withServer(now, server))
        throw error
      }
    })
  const acts = (id: string) => ({
    testing: testing.has(id),
    busy,
    onTest: () => void test(id),
    onSignIn: () =>
      void trials.attempt(async () => {
        window.location.assign((await call(names.signIn, { params: { id } })).url)
      }),
    onSignOut: () =>
      void resource.change(async () => {
        const now = serversView.parse(await call(names.signOut, { params: { id } }))
        showToast('Signed out.')
        void test(id)
        return now
      }),
  })
  return { view, problem, unanswered: trials.problem, resource, test, change, acts }
}

function AddedPart({ of, view, servers }: PartProps) {
  const { resource, test } = servers
  /** A server, or a new one. Null: no form is open. */
  const [edited, setEdited] = useState<ServerView | 'new' | null>(null)
  const form = (server: ServerView | null) => (
    <ServerForm
      of={of}
      may={view.may}
      server={server}
      onLeave={() => setEdited(null)}
      onSaved={(now, name) => {
        resource.show(now)
        setEdited(null)
        const saved = now.servers.find((one) => one.name === name)
        if (saved?.enabled === true) void test(saved.id)
      }}
    />
  )
  return (
    <Part
      title={of === 'own' ? 'Your servers' : 'Servers for everybody'}
      text={
        of === 'own'
          ? 'Only your agent uses them. Changes apply from your next message.'
          : 'Changes apply from the next message. Values are stored encrypted and never shown again.'
      }
    >
      <Introduction of={of} view={view} isIdle={edited === null} />
      {view.servers.length > 0 && (
        <AddedList of={of} view={view} servers={servers} edited={edited} form={form} onEdit={setEdited} />
      )}
      {edited === 'new' ? (
        <div className="rounded-lg border border-line p-3">{form(null)}</div>
      ) : (
        view.may !== 'none' && (
          <div>
            <Button
              variant={view.servers.length === 0 ? 'primary' : 'secondary'}
              disabled={view.servers.length >= view.most}
              onClick={() => setEdited('new')}
            >
              <Plus className="size-4" aria-hidden /> Add a server
            </Button>
          </div>
        )
      )}
    </Part>
  )
}

/** `isIdle`: no form is open. */
function Introduction({ of, view, isIdle }: { of: ServerScope; view: ServersView; isIdle: boolean }) {
  return (
    <>
      {of === 'deployment' && (
        <p className="text-sm text-muted">
          Everyone can use them, unless a team or person has its own list.{' '}
          <Link
            href="/settings/teams"
            className="inline-flex items-center underline underline-offset-2 hover:text-ink pointer-coarse:h-11"
          >
            To the teams
          </Link>
        </p>
      )}
      {view.may === 'none' && <Hint>Your administrator doesn’t allow personal servers.</Hint>}
      {view.servers.length === 0 && isIdle && view.may !== 'none' && (
        <p className="text-sm text-muted">
          No servers yet. MCP servers give the agent more tools: a tracker, a calendar, a database.
        </p>
      )}
    </>
  )
}

function AddedList(
  props: PartProps & {
    edited: ServerView | 'new' | null
    form: (server: ServerView) => ReactNode
    onEdit: (server: ServerView) => void
  },
) {
  const { of, view, edited, form } = props
  const { acts, change } = props.servers
  const [doomed, setDoomed] = useState<ServerView | null>(null)
  return (
    <>
      <ul
        aria-label={of === 'own' ? 'Your MCP servers' : 'Added MCP servers'}
        className="divide-y divide-line rounded-lg border border-line"
      >
        {view.servers.map((server) =>
          edited !== null && edited !== 'new' && edited.id === server.id ? (
            <li key={server.id} className="p-3">
              {form(server)}
            </li>
          ) : (
            <AddedLine
              key={server.id}
              server={server}
              {...acts(server.id)}
              onEdit={() => props.onEdit(server)}
              onRemove={() => setDoomed(server)}
              onSwitch={(enabled) => void change(server, { enabled })}
              onChoose={(choice) => void change(server, choice)}
            />
          ),
        )}
      </ul>
      <RemoveDialog of={of} server={doomed} servers={props.servers} onClose={() => setDoomed(null)} />
    </>
  )
}

function GivenPart({ of, view, servers }: PartProps) {
  return (
    <Part
      title={of === 'own' ? 'From your administrator' : 'From the configuration'}
      text={
        of === 'own'
          ? 'Available to your agent automatically.'
          : 'Set in the environment or the configuration file. Programs that run next to the agent can only be added there: they run as the agent’s user and can read what it can.'
      }
    >
      <ul
        aria-label={of === 'own' ? 'Deployment MCP servers' : 'Configured MCP servers'}
        className="divide-y divide-line rounded-lg border border-line"
      >
        {view.given.map((server) => (
          <GivenLine key={server.id} server={server} {...servers.acts(server.id)} />
        ))}
      </ul>
    </Part>
  )
}

function RemoveDialog(props: {
  of: ServerScope
  server: ServerView | null
  servers: ServerActs
  onClose: () => void
}) {
  const { of, server: doomed } = props
  const { resource } = props.servers
  return (
    <ConfirmDialog
      title={`Remove ${doomed?.name ?? ''}?`}
      confirm="Remove"
      open={doomed !== null}
      onCancel={props.onClose}
      onConfirm={() =>
        void resource.change(async () => {
          if (doomed === null) return undefined
          props.onClose()
          const { remove } = SERVER_ACTIONS[of]
          const now = serversView.parse(await call(remove, { params: { id: doomed.id } }))
          showToast(`${doomed.name} removed.`)
          return now
        })
      }
    >
      {of === 'own'
        ? 'Deletes its values and your sign-in. Its tools disappear with your next message.'
        : 'Deletes its values and everyone’s sign-ins. Its tools disappear with the next message.'}
    </ConfirmDialog>
  )
}

/** The server to which the person has just signed in; the address is as it was before. */
function takeConnected(): string | null {
  const { pathname, search } = window.location
  const connected = new URLSearchParams(search).get('connected')
  if (connected !== null) window.history.replaceState(null, '', pathname)
  return connected
}

function withServer(view: ServersView, server: ServerView): ServersView {
  return { ...view, servers: view.servers.map((one) => (one.id === server.id ? server : one)) }
}

function withStatus(view: ServersView, id: string, status: ServerStateView): ServersView {
  const renewed = <S extends { id: string; status: ServerStateView }>(server: S): S =>
    server.id === id ? { ...server, status } : server
  return { ...view, servers: view.servers.map(renewed), given: view.given.map(renewed) }
}
