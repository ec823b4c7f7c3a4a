import { Monitor, Moon, Sun } from 'lucide-react'
import { cn } from '../lib/cn.ts'
import { THEMES, setTheme, type Theme, useTheme } from '../lib/theme.ts'
import { turnNotifications, useNotificationState } from '../lib/notifications.ts'

const WORDS: Record<Theme, { name: string; icon: typeof Sun }> = {
  light: { name: 'Light', icon: Sun },
  dark: { name: 'Dark', icon: Moon },
  system: { name: 'System', icon: Monitor },
}

export function ThemePicker() {
  const theme = useTheme()
  return (
    <fieldset className="flex gap-1 rounded-lg border border-line bg-sunken p-1">
      <legend className="sr-only">Theme</legend>
      {THEMES.map((choice) => {
        const { name, icon: Icon } = WORDS[choice]
        return (
          <label
            key={choice}
            className={cn(
              'flex h-8 pointer-coarse:h-11 flex-1 cursor-pointer items-center justify-center gap-2 rounded-md text-sm text-muted has-focus-visible:outline-2 has-focus-visible:outline-accent',
              theme === choice && 'bg-raised font-medium text-ink shadow-1',
            )}
          >
            <input
              type="radio"
              name="theme"
              value={choice}
              checked={theme === choice}
              onChange={() => setTheme(choice)}
              className="sr-only"
            />
            <Icon className="size-4" aria-hidden />
            {name}
          </label>
        )
      })}
    </fieldset>
  )
}

/** Turns browser notifications on for when the person looks elsewhere. */
export function NotificationSwitch() {
  const state = useNotificationState()
  if (state === 'impossible') {
    return (
      <p className="text-sm text-muted">
        Not available in this browser. They need a desktop browser and https.
      </p>
    )
  }
  if (state === 'blocked') {
    return (
      <p className="text-sm text-muted">
        Your browser blocks notifications from this page. Allow them next to the address bar, then reload.
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
      When a chat needs you or finishes while you’re elsewhere
    </label>
  )
}
