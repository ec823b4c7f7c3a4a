import type { ReactNode } from 'react'
import { useChat } from '../chat/chat-context.ts'
import { TitledDialog } from '../ui/titled-dialog.tsx'
import { Account } from './account.tsx'
import { ApiKeys } from './api-keys.tsx'
import { People } from './people.tsx'
import { Rules } from './rules.tsx'
import { Secrets } from './secrets.tsx'
import { NotificationSwitch, ThemePicker } from './preferences.tsx'
import { ShortcutList } from './shortcuts.tsx'
import { OwnInstructions, TeamInstructions } from './instructions.tsx'

export function SettingsDialog(props: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const { me } = useChat()
  return (
    <TitledDialog {...props} title="Settings" size="max-h-[min(42rem,calc(100dvh-2rem))] w-[34rem]">
      <div className="flex flex-col gap-7 overflow-y-auto p-5">
        <Section title="Appearance">
          <ThemePicker />
        </Section>
        <Section title="Notifications" text="From this browser, on this device.">
          <NotificationSwitch />
        </Section>
        <Section title="Instructions" text="Followed in all your chats.">
          <OwnInstructions isAdministrator={me.role === 'admin'} />
        </Section>
        {me.role === 'admin' && (
          <Section
            title="Team instructions"
            text="Followed in everybody’s chats, before their own. You see this as an administrator."
          >
            <TeamInstructions />
          </Section>
        )}
        <Section title="Rules" text="What may run without asking, in all your chats.">
          <Rules />
        </Section>
        <Section title="Secrets" text="Tokens that tools use for you. The model never sees them.">
          <Secrets />
        </Section>
        <Section title="API keys" text="For scripts that call POST /api/chat. A key acts as you.">
          <ApiKeys />
        </Section>
        {me.role === 'admin' && (
          <Section title="People" text="Who may sign in. You see this as an administrator.">
            <People />
          </Section>
        )}
        <Section title="Keyboard">
          <ShortcutList />
        </Section>
        <Section title="Account">
          <Account />
        </Section>
      </div>
    </TitledDialog>
  )
}

function Section(props: { title: string; text?: string; children: ReactNode }) {
  return (
    <section aria-label={props.title} className="flex flex-col gap-3">
      <div>
        <h2 className="text-sm font-semibold">{props.title}</h2>
        {props.text !== undefined && <p className="mt-0.5 text-sm text-muted">{props.text}</p>}
      </div>
      {props.children}
    </section>
  )
}
