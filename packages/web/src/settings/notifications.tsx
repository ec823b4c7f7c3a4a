import { turnNotifications, useNotificationState } from '../lib/notifications.ts'

/** Whether this browser tells the person when they look elsewhere. */
export function NotificationSwitch() {
  const state = useNotificationState()
  if (state === 'impossible') {
    return (
      <p className="text-sm text-muted">
        This browser shows none here. They need a computer’s browser, and an address with https or this
        machine’s own.
      </p>
    )
  }
  if (state === 'blocked') {
    return (
      <p className="text-sm text-muted">
        Your browser blocks them for this page. Allow them in what it shows beside the address, then reload.
      </p>
    )
  }
  return (
    <label className="flex min-h-8 items-center gap-2.5 text-sm pointer-coarse:min-h-11">
      <input
        type="checkbox"
        className="size-4 accent-accent"
        checked={state === 'on'}
        onChange={(event) => void turnNotifications(event.target.checked ? 'on' : 'off')}
      />
      When a chat needs you or is done and you look elsewhere
    </label>
  )
}
