/**
 * The settings: a list of sections, and one of them beside it; on a small screen one or the other.
 * Each has an address of its own.
 */
import {
  Activity,
  Archive,
  ArrowLeft,
  Bell,
  Bot,
  Boxes,
  ChartColumn,
  ChevronRight,
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
import type { Role } from '@sandlot/shared/team/role'
import { type ReactNode, useEffect, useRef } from 'react'
import { Link, Redirect } from 'wouter'
import { useChat } from '../chat/chat-context.ts'
import { useGlobalKeys } from '../chat/use-global-keys.ts'
import { cn } from '../lib/cn.ts'
import { useIsWide } from '../lib/wide.ts'
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
import { ShortcutList } from './shortcuts.tsx'
import { Costs } from './usage/costs.tsx'
import { OwnUsage } from './usage/usage.tsx'

interface Section {
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

interface Group {
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
      text: 'All that Sandlot keeps of you.',
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
      text: 'What your messages have used up.',
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
      text: 'What may run without asking, in all your chats.',
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
      text: 'How this Sandlot is now. It renews itself.',
      divided: true,
      children: <OverviewSection />,
    },
    {
      id: 'costs',
      title: 'Usage and costs',
      icon: ChartColumn,
      text: 'What everybody has used up.',
      divided: true,
      children: <Costs />,
    },
    {
      id: 'models',
      title: 'Models',
      icon: Bot,
      text: 'What the agent thinks with.',
      divided: true,
      children: <ModelsSection />,
    },
    {
      id: 'mcp',
      title: 'MCP servers',
      icon: Plug,
      text: 'More tools for everybody’s agents.',
      divided: true,
      children: <Servers of="deployment" />,
    },
    {
      id: 'people',
      title: 'People',
      icon: UsersRound,
      text: 'Who may sign in.',
      children: (itemId) => <People personId={itemId} />,
    },
    {
      id: 'teams',
      title: 'Teams',
      icon: Boxes,
      text: 'What groups of people may use.',
      children: (itemId) => <Teams teamId={itemId} />,
    },
    {
      id: 'tools',
      title: 'Tools',
      icon: Wrench,
      text: 'How often the agent used each, and how that went.',
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
      text: 'How long things are kept.',
      children: <Retention />,
    },
    {
      id: 'backups',
      title: 'Backups',
      icon: Archive,
      text: 'How they went, and the way back.',
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

const PATH = '/settings'

/**
 * `section`, `item`: of the address; absent: the list. `back`: the address of the chat behind it,
 * which was there before the settings where `fromChat`.
 */
export default function SettingsPage(props: {
  section: string | undefined
  item: string | undefined
  back: string
  fromChat: boolean
  onLeave: () => void
}) {
  const { me } = useChat()
  const wide = useIsWide()
  const groups = groupsOf(me.role)
  const section = groups.flatMap(({ sections }) => sections).find(({ id }) => id === props.section)
  const { onLeave } = props
  useGlobalKeys((shortcut) => {
    // Escape in a field is no way out of the page: what was typed would be gone.
    if (shortcut === 'settings' || (shortcut === 'stop' && !isTyping())) onLeave()
    else return false
    return true
  })
  if (wide && props.section === undefined) return <Redirect to={`${PATH}/account`} replace />
  const shown =
    section === undefined ? (
      props.section !== undefined && <Unknown wide={wide} />
    ) : (
      <SectionPage key={section.id} section={section} item={props.item} wide={wide} />
    )
  // One tree for both widths: a form that is open keeps what was typed when the window is turned.
  return (
    <div className="flex h-full">
      {wide && (
        <aside aria-label="Settings" className="flex w-66 shrink-0 flex-col border-r border-line bg-panel">
          <div className="flex h-13 items-center px-2.5">
            <BackLink href={props.back} label="Back to chats" />
          </div>
          <h2 className="px-5 pt-1 pb-1 text-lg font-semibold tracking-tight">Settings</h2>
          <SectionList groups={groups} current={section?.id} focus={props.fromChat} />
        </aside>
      )}
      {shown === false && !wide ? <PhoneList groups={groups} back={props.back} /> : shown}
    </div>
  )
}

function isTyping(): boolean {
  return (
    document.activeElement?.matches('input:not([type=checkbox], [type=radio]), textarea, select') === true
  )
}

function BackLink(props: { href: string; label: string }) {
  return (
    <Link
      href={props.href}
      className="flex h-8 items-center gap-2 rounded-lg px-2 text-sm text-muted hover:bg-hover hover:text-ink max-md:h-11"
    >
      <ArrowLeft className="size-4 shrink-0" aria-hidden /> {props.label}
    </Link>
  )
}

/** `focus`: what had it is gone with the chat. */
function SectionList(props: { groups: readonly Group[]; current: string | undefined; focus: boolean }) {
  const { focus } = props
  const current = useRef<HTMLAnchorElement>(null)
  useEffect(() => {
    if (focus) current.current?.focus({ preventScroll: true })
  }, [focus])
  // The list is longer than most windows, and an address may lead to its end.
  useEffect(() => {
    // A newer browser answers with a promise, which is no way to undo it.
    current.current?.scrollIntoView({ block: 'nearest' })
  }, [props.current])
  return (
    <nav aria-label="Sections" className="min-h-0 flex-1 overflow-y-auto px-2.5 pb-4">
      {props.groups.map(({ title, sections }) => (
        <section key={title} aria-label={title}>
          <h2 className="px-2.5 pt-4 pb-1 text-xs font-medium text-faint">{title}</h2>
          <ul className="flex flex-col gap-px">
            {sections.map(({ id, title: name, icon: Icon }) => (
              <li key={id}>
                <Link
                  ref={id === props.current ? current : undefined}
                  href={`${PATH}/${id}`}
                  aria-current={id === props.current ? 'page' : undefined}
                  className={cn(
                    'flex h-9 scroll-my-4 items-center gap-2.5 rounded-lg px-2.5 text-sm focus-visible:-outline-offset-2 max-md:h-12 pointer-coarse:h-12',
                    id === props.current
                      ? 'bg-active font-medium text-ink'
                      : 'text-muted hover:bg-hover hover:text-ink max-md:text-ink',
                  )}
                >
                  <Icon className="size-4 shrink-0 text-faint" aria-hidden />
                  <span className="min-w-0 flex-1 truncate">{name}</span>
                  <ChevronRight className="size-4 text-faint md:hidden" aria-hidden />
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  )
}

function PhoneList(props: { groups: readonly Group[]; back: string }) {
  return (
    <main className="flex h-full min-w-0 flex-1 flex-col bg-panel">
      <div className="flex h-13 shrink-0 items-center px-1.5">
        <BackLink href={props.back} label="Back to chats" />
      </div>
      <h1 className="px-5 pt-1 text-xl font-semibold tracking-tight">Settings</h1>
      <SectionList groups={props.groups} current={undefined} focus={false} />
    </main>
  )
}

function SectionPage(props: { section: Section; item?: string | undefined; wide: boolean }) {
  const { id, title, text, divided, children } = props.section
  const { wide, item } = props
  const top = useRef<HTMLElement>(null)
  const scroller = useRef<HTMLElement>(null)
  useEffect(() => {
    // The link that led here is gone with the list.
    if (!wide) top.current?.focus({ preventScroll: true })
    scroller.current?.scrollTo(0, 0)
    // A window that only changes its width takes no focus away.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [item])
  const toList = typeof children === 'function' && item !== undefined
  const page = (
    <section
      ref={top}
      tabIndex={-1}
      aria-label={divided === true ? undefined : title}
      className="mx-auto w-full max-w-3xl px-4 pt-2 pb-16 outline-none md:px-10 md:pt-12"
    >
      {wide && toList && (
        <div className="-mt-9 mb-4 -ml-2 flex">
          <BackLink href={`${PATH}/${id}`} label={`All ${title.toLowerCase()}`} />
        </div>
      )}
      {/* A single item has a title of its own. */}
      {!toList && <h1 className="text-xl font-semibold tracking-tight">{title}</h1>}
      {!toList && text !== undefined && <p className="mt-1 text-sm text-muted">{text}</p>}
      <div className={cn('flex flex-col gap-10', !toList && 'mt-6')}>
        {typeof children === 'function' ? children(item) : children}
      </div>
    </section>
  )
  return (
    <main
      ref={scroller}
      className={cn('min-w-0 flex-1 overflow-y-auto bg-canvas', wide && '[scrollbar-gutter:stable]')}
    >
      {!wide && (
        <div className="sticky top-0 z-10 flex h-13 items-center bg-canvas px-1.5">
          <BackLink href={toList ? `${PATH}/${id}` : PATH} label={toList ? title : 'Settings'} />
        </div>
      )}
      {page}
    </main>
  )
}

/** An old link, or one that was sent by an administrator. */
function Unknown(props: { wide: boolean }) {
  const { me } = useChat()
  return (
    <SectionPage
      wide={props.wide}
      section={{
        id: '',
        title: 'Not here',
        icon: CircleUser,
        children: (
          <p className="text-sm text-muted">
            There is no such section
            {me.role === 'admin'
              ? '.'
              : me.role === 'guest'
                ? ', or it is not for guests.'
                : ', or it is for administrators only.'}
          </p>
        ),
      }}
    />
  )
}

function Appearance() {
  return (
    <>
      <Part title="Appearance">
        <ThemePicker />
      </Part>
      <Part title="Keyboard">
        <ShortcutList />
      </Part>
    </>
  )
}

function Instructions() {
  const { me } = useChat()
  return (
    <>
      <Part title="Instructions" heading="Yours" text="Followed in all your chats.">
        <OwnInstructions isAdministrator={me.role === 'admin'} />
      </Part>
      {me.role === 'admin' && (
        <Part
          title="Team instructions"
          text="Followed in everybody’s chats, before their own. You see this as an administrator."
        >
          <TeamInstructions />
        </Part>
      )}
    </>
  )
}
