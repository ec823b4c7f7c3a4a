/** Which notices a person gets, by push and by e-mail, and whether this browser shows them. */
import {
  NOTIFICATION_KINDS,
  type NotificationKind,
  type NotificationSettings,
  type NotificationTest,
} from '@sandlot/shared/chat/notifications'
import { useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { formatCount } from '../lib/format.ts'
import { turnSound, useIsSoundOn } from '../lib/notifications.ts'
import { call } from '../net/call.ts'
import { pushState, type PushState, subscribePush, unsubscribePush } from '../net/push.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Part } from './part.tsx'
import { NotificationSwitch } from './preferences.tsx'
import { useAttempt } from '../lib/use-attempt.ts'

const KINDS: Record<NotificationKind, { title: string; text: string }> = {
  approval: { title: 'A chat needs you', text: 'An approval or an answer.' },
  ended: { title: 'Answer ready', text: 'Your request finished or stopped.' },
  mentioned: { title: 'You’re mentioned', text: 'In a comment in a shared chat.' },
  shared: { title: 'A chat is shared with you', text: 'Or with one of your teams.' },
}

interface Known {
  device: PushState
  settings: NotificationSettings
}

export function Notifications() {
  const { data, problem, busy, change, update } = useResource<Known>('notifications', async (signal) => ({
    device: await pushState(),
    settings: await call('getNotifications', { signal }),
  }))
  const choose = (kind: NotificationKind, way: 'push' | 'mail', on: boolean) => {
    if (data === null) return
    const { settings, device } = data
    const choice = { ...settings.choice, [kind]: { ...settings.choice[kind], [way]: on } }
    update((now) => ({ ...now, settings: { ...settings, choice } }))
    void change(async () => {
      try {
        return { device, settings: await call('putNotifications', { body: choice }) }
      } catch (error) {
        update(() => data)
        throw error
      }
    })
  }
  return (
    <>
      {problem !== null && <Alert>{problem}</Alert>}
      <Part title="While Sandlot is open" text="Shown by this browser. They name the chat.">
        <NotificationSwitch />
        <SoundSwitch />
      </Part>
      <Part
        title="While you’re away"
        text="Sent when Sandlot isn’t in view anywhere. They name the tool or the person, never the chat’s name or content."
      >
        <ThisBrowser
          state={data?.device ?? null}
          busy={busy}
          onTurn={(on) =>
            void change(async () => {
              if (on) await subscribePush()
              else await unsubscribePush()
            })
          }
        />
        {data !== null && (
          <>
            <Choices settings={data.settings} onChoose={choose} />
            <p className="text-sm text-muted">{waysWords(data.settings)}</p>
            <Test />
          </>
        )}
      </Part>
    </>
  )
}

function Test() {
  const { busy, problem, attempt } = useAttempt()
  const [tested, setTested] = useState<NotificationTest | null>(null)
  return (
    <div className="flex flex-wrap items-center gap-3">
      <Button
        disabled={busy}
        onClick={() => void attempt(async () => setTested(await call('testNotifications')))}
      >
        Send test
      </Button>
      <p role="status" className="min-w-0 flex-1 basis-56 text-sm text-muted">
        {problem ?? (tested !== null && testWords(tested))}
      </p>
    </div>
  )
}

function SoundSwitch() {
  const isSoundOn = useIsSoundOn()
  return (
    <label className="flex min-h-8 items-center gap-2.5 text-sm pointer-coarse:min-h-11">
      <input
        type="checkbox"
        className="size-4 accent-accent"
        checked={isSoundOn}
        onChange={({ target }) => turnSound(target.checked)}
      />
      Play a sound when a chat needs you or finishes
    </label>
  )
}

function ThisBrowser(props: { state: PushState | null; busy: boolean; onTurn: (on: boolean) => void }) {
  const { state } = props
  if (state === 'impossible' || state === 'blocked')
    return (
      <p className="text-sm text-muted">
        {state === 'blocked'
          ? 'Your browser blocks notifications from this page. Allow them next to the address bar, then reload.'
          : 'Push isn’t available here. It needs https and, on iPhone and iPad, Sandlot on the home screen.'}
      </p>
    )
  return (
    <label className="flex min-h-8 items-center gap-2.5 text-sm pointer-coarse:min-h-11">
      <input
        type="checkbox"
        className="size-4 accent-accent"
        checked={state === 'on'}
        disabled={state === null || props.busy}
        onChange={(event) => props.onTurn(event.target.checked)}
      />
      Push notifications in this browser
    </label>
  )
}

function Choices(props: {
  settings: NotificationSettings
  onChoose: (kind: NotificationKind, way: 'push' | 'mail', on: boolean) => void
}) {
  const { choice, mail } = props.settings
  return (
    <div className="rounded-lg border border-line">
      <table className="w-full text-sm">
        <thead>
          <tr className="border-b border-line text-xs text-muted">
            <th scope="col" className="py-2 pl-3 text-left font-medium">
              When
            </th>
            <th scope="col" className="w-16 text-center font-medium">
              Push
            </th>
            <th scope="col" className="w-16 text-center font-medium">
              E-mail
            </th>
          </tr>
        </thead>
        <tbody>
          {NOTIFICATION_KINDS.map((kind) => (
            <tr key={kind} className="border-b border-line last:border-0">
              <th scope="row" className="py-2 pl-3 text-left font-normal">
                <span className="block font-medium">{KINDS[kind].title}</span>
                <span className="block text-xs text-muted">{KINDS[kind].text}</span>
              </th>
              {(['push', 'mail'] as const).map((way) => (
                <td key={way} className="p-0 text-center">
                  <label className="flex min-h-11 cursor-pointer items-center justify-center">
                    <span className="sr-only">
                      {KINDS[kind].title}, by {way === 'push' ? 'push' : 'e-mail'}
                    </span>
                    <input
                      type="checkbox"
                      className="size-4 accent-accent disabled:opacity-50"
                      disabled={way === 'mail' && !mail}
                      checked={choice[kind][way] && (way === 'push' || mail)}
                      onChange={(event) => props.onChoose(kind, way, event.target.checked)}
                    />
                  </label>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function waysWords({ browsers, mail }: NotificationSettings): string {
  const pushes =
    browsers === 0
      ? 'Push isn’t enabled in any of your browsers.'
      : `Push is enabled in ${formatCount(browsers, 'browser')}.`
  return mail ? pushes : `${pushes} E-mail isn’t set up; ask your administrator.`
}

function testWords({ push, mail }: NotificationTest): string {
  const words = [
    push.sent === 0 ? 'No push was sent.' : `Sent to ${formatCount(push.sent, 'browser')}.`,
    ...push.problems,
  ]
  if (mail?.sent === true) words.push('E-mail sent.')
  else if (mail !== null) words.push(`Couldn’t send e-mail: ${mail.problem ?? 'it failed.'}`)
  return words.join(' ')
}
