/** The sections of the settings, in the order of their list, and who has which. */
import {
  Activity,
  Archive,
  Bell,
  Bot,
  Boxes,
  ChartColumn,
  CircleUser,
  Gauge,
  Container,
  Gavel,
  KeyRound,
  ListChecks,
  Lock,
  type LucideIcon,
  FolderDown,
  Hourglass,
  Palette,
  History,
  Plug,
  ScrollText,
  ShieldCheck,
  SlidersHorizontal,
  UsersRound,
  Wrench,
} from 'lucide-react'
import type { Role } from '@sandlot/shared/account/role'
import type { ReactNode } from 'react'
import { useChat } from '../state/chat-context.ts'
import { Account } from './account.tsx'
import { ApiKeys } from './api-keys.tsx'
import { OwnInstructions, TeamInstructions } from './instructions.tsx'
import { Audit } from './audit/audit.tsx'
import { Retention } from './audit/retention.tsx'
import { BackupsSection } from './backups/backups.tsx'
import { ConfigurationSection } from './configuration/configuration.tsx'
import { OwnData } from './data/own-data.tsx'
import { Part } from './part.tsx'
import { OverviewSection } from './overview/overview.tsx'
import { ModelsSection } from './models/models.tsx'
import { People } from './people/people.tsx'
import { Teams } from './people/teams.tsx'
import { PolicySection } from './policy/policy.tsx'
import { SandboxesSection } from './sandboxes/sandboxes.tsx'
import { ToolsSection } from './tools/tools.tsx'
import { Notifications } from './notifications.tsx'
import { ThemePicker } from './preferences.tsx'
import { Rules } from './rules.tsx'
import { Secrets } from './secrets.tsx'
import { Security } from './security.tsx'
import { Servers } from './servers/servers.tsx'
import { ShortcutChoices } from './shortcuts.tsx'
import { Costs } from './usage/costs.tsx'
import { OwnUsage } from './usage/usage.tsx'

export interface Section {
  id: string
  title: string
  icon: LucideIcon
  /** A second line of the title. */
  text?: string
  /** Several parts, each with a title of its own. */
  divided?: true
  /** A function: has pages for single items, which it gets by their ids. */
  children: ReactNode | ((itemId: string | undefined) => ReactNode)
}

export interface Group {
  title: string
  sections: readonly Section[]
}

const OF_PERSON: Group = {
  title: 'You',
  sections: [
    { id: 'account', title: 'Account', icon: CircleUser, children: <Account /> },
    {
      id: 'security',
      title: 'Sign-in & security',
      icon: ShieldCheck,
      divided: true,
      children: <Security />,
    },
    {
      id: 'notifications',
      title: 'Notifications',
      icon: Bell,
      divided: true,
      children: <Notifications />,
    },
    {
      id: 'appearance',
      title: 'Appearance & keyboard',
      icon: Palette,
      divided: true,
      children: <Appearance />,
    },
    {
      id: 'data',
      title: 'Your data',
      icon: FolderDown,
      text: 'Everything Sandlot stores about you.',
      divided: true,
      children: <OwnData />,
    },
  ],
}

const OF_AGENT: Group = {
  title: 'Your agent',
  sections: [
    {
      id: 'usage',
      title: 'My usage',
      icon: Gauge,
      text: 'Your usage.',
      divided: true,
      children: <OwnUsage />,
    },
    {
      id: 'instructions',
      title: 'Instructions',
      icon: ScrollText,
      divided: true,
      children: <Instructions />,
    },
    {
      id: 'rules',
      title: 'Approval rules',
      icon: ListChecks,
      text: 'What can run without asking, in all your chats.',
      children: <Rules />,
    },
    {
      id: 'servers',
      title: 'My MCP servers',
      icon: Plug,
      text: 'More tools for your agent.',
      divided: true,
      children: <Servers of="own" />,
    },
    {
      id: 'secrets',
      title: 'Secrets',
      icon: Lock,
      text: 'Tokens that tools use for you. The model never sees them.',
      children: <Secrets />,
    },
    {
      id: 'keys',
      title: 'API keys',
      icon: KeyRound,
      text: 'For scripts that call POST /api/chat. A key acts as you.',
      children: <ApiKeys />,
    },
  ],
}

const ADMINISTRATION: Group = {
  title: 'Administration',
  sections: [
    {
      id: 'overview',
      title: 'Overview',
      icon: Activity,
      text: 'Live status.',
      divided: true,
      children: <OverviewSection />,
    },
    {
      id: 'costs',
      title: 'Usage and costs',
      icon: ChartColumn,
      text: 'Usage by everyone.',
      divided: true,
      children: <Costs />,
    },
    {
      id: 'models',
      title: 'Models',
      icon: Bot,
      text: 'Models the agent uses.',
      divided: true,
      children: <ModelsSection />,
    },
    {
      id: 'mcp',
      title: 'MCP servers',
      icon: Plug,
      text: 'More tools for everyone’s agents.',
      divided: true,
      children: <Servers of="deployment" />,
    },
    {
      id: 'people',
      title: 'People',
      icon: UsersRound,
      text: 'People with access.',
      children: (itemId) => <People personId={itemId} />,
    },
    {
      id: 'teams',
      title: 'Teams',
      icon: Boxes,
      text: 'Access by team.',
      children: (itemId) => <Teams teamId={itemId} />,
    },
    {
      id: 'tools',
      title: 'Tools',
      icon: Wrench,
      text: 'Tool usage and results.',
      children: <ToolsSection />,
    },
    {
      id: 'sandboxes',
      title: 'Sandboxes',
      icon: Container,
      text: 'Where people’s commands run.',
      children: <SandboxesSection />,
    },
    {
      id: 'policy',
      title: 'Rules for everybody',
      icon: Gavel,
      divided: true,
      children: <PolicySection />,
    },
    {
      id: 'configuration',
      title: 'Configuration',
      icon: SlidersHorizontal,
      divided: true,
      children: <ConfigurationSection />,
    },
    {
      id: 'audit',
      title: 'Audit',
      icon: History,
      text: 'Who did what, to whom, and from where.',
      divided: true,
      children: <Audit />,
    },
    {
      id: 'retention',
      title: 'Retention',
      icon: Hourglass,
      text: 'How long data is kept.',
      children: <Retention />,
    },
    {
      id: 'backups',
      title: 'Backups',
      icon: Archive,
      text: 'Backup history and restore.',
      divided: true,
      children: <BackupsSection />,
    },
  ],
}

/** A guest has no agent, so nothing of one. */
export function groupsOf(role: Role): readonly Group[] {
  if (role === 'guest') return [OF_PERSON]
  return role === 'admin' ? [OF_PERSON, OF_AGENT, ADMINISTRATION] : [OF_PERSON, OF_AGENT]
}

function Appearance() {
  return (
    <>
      <Part title="Appearance">
        <ThemePicker />
      </Part>
      <Part title="Keyboard">
        <ShortcutChoices />
      </Part>
    </>
  )
}

function Instructions() {
  const { me } = useChat()
  return (
    <>
      <Part title="Instructions" heading="Yours" text="Applied in all your chats.">
        <OwnInstructions isAdministrator={me.role === 'admin'} />
      </Part>
      {me.role === 'admin' && (
        <Part
          title="Team instructions"
          text="Applied in everyone’s chats, before their own. Only administrators see this."
        >
          <TeamInstructions />
        </Part>
      )}
    </>
  )
}
