import { Monitor, Moon, Sun } from 'lucide-react'
import { cn } from '../lib/cn.ts'
import { setTheme, type Theme, THEMES, useTheme } from '../lib/theme.ts'

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
