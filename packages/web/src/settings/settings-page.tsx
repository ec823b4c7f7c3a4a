/**
 * The settings: a list of sections, and one of them beside it; on a small screen one or the other.
 * Each has an address of its own.
 */
import { ArrowLeft, ChevronRight, CircleUser } from 'lucide-react'
import { useEffect, useEffectEvent, useRef } from 'react'
import { Link, Redirect } from 'wouter'
import { useChat } from '../state/chat-context.ts'
import { useGlobalKeys } from '../chat/use-global-keys.ts'
import { cn } from '../lib/cn.ts'
import { useIsWide } from '../lib/wide.ts'
import { type Group, type Section, groupsOf } from './sections.tsx'

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
  // An event: a window that only changes its width takes no focus away.
  const arrive = useEffectEvent(() => {
    // The link that led here is gone with the list.
    if (!wide) top.current?.focus({ preventScroll: true })
    scroller.current?.scrollTo(0, 0)
  })
  useEffect(() => arrive(), [item])
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
            Page not found
            {me.role === 'admin'
              ? '.'
              : me.role === 'guest'
                ? ', or guests don’t have access.'
                : ', or it’s for administrators only.'}
          </p>
        ),
      }}
    />
  )
}
