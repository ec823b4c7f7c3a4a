import type { SessionSummary } from '@sandlot/shared/chat/frames'
import {
  Archive,
  ArchiveRestore,
  Check,
  ChevronRight,
  Ellipsis,
  Folder,
  FolderPlus,
  ListChecks,
  type LucideIcon,
  Mail,
  MailOpen,
  Pencil,
  Pin,
  PinOff,
  Trash2,
} from 'lucide-react'
import type { ReactNode, RefObject } from 'react'
import { useChat } from '../state/chat-context.ts'
import { cn } from '../lib/cn.ts'
import { Revealed } from '../ui/revealed.tsx'
import { choose, mark, useChatListState } from '../state/chat-list-state.ts'
import { Menu } from '../ui/on-demand.tsx'

const POPUP =
  'popup max-h-(--available-height) min-w-48 overflow-y-auto rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none'
const ITEM =
  'flex h-8 pointer-coarse:h-11 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm outline-none data-highlighted:bg-hover data-popup-open:bg-hover'

/** Actions on a chat in the list. */
export function SessionMenu(props: {
  summary: SessionSummary
  title: string
  /** Inside the page’s landmark. */
  host: RefObject<HTMLElement | null>
  onRename: (sessionId: string) => void
  onDelete: (sessionIds: readonly string[]) => void
  /** The chat is to be in a project that is made now. */
  onNewProject: (sessionId: string) => void
}) {
  const { summary, host } = props
  const { sessionId, owner, pinned, archived } = summary
  const { me } = useChat()
  const sessionIds = [sessionId]
  const isOwn = owner === undefined && me.role !== 'guest'
  return (
    <Menu.Root>
      <Menu.Trigger
        aria-label={`Options for ${props.title}`}
        className="absolute right-1 inline-flex size-7 items-center justify-center rounded-md text-faint opacity-0 group-hover/item:opacity-100 hover:bg-hover hover:text-ink focus-visible:opacity-100 data-popup-open:opacity-100 pointer-coarse:right-0 pointer-coarse:size-11 pointer-coarse:opacity-100"
      >
        <Ellipsis className="size-4" aria-hidden />
      </Menu.Trigger>
      <Menu.Portal container={host}>
        <Menu.Positioner positionMethod="fixed" side="bottom" align="end" sideOffset={4} className="z-50">
          <Menu.Popup className={POPUP}>
            <Item
              icon={pinned ? PinOff : Pin}
              onClick={() => void mark({ sessionIds, pinned: pinned !== true })}
            >
              {pinned ? 'Unpin' : 'Pin'}
            </Item>
            {isOwn && (
              <Item icon={Pencil} onClick={() => props.onRename(sessionId)}>
                Rename…
              </Item>
            )}
            {isOwn && <ProjectSubmenu summary={summary} host={host} onNewProject={props.onNewProject} />}
            <ReadItem summary={summary} />
            <Item
              icon={archived ? ArchiveRestore : Archive}
              onClick={() => void mark({ sessionIds, archived: archived !== true })}
            >
              {archived ? 'Unarchive' : 'Archive'}
            </Item>
            <Item icon={ListChecks} onClick={() => choose(sessionId)}>
              Select multiple…
            </Item>
            {isOwn && <DeleteItem onDelete={() => props.onDelete(sessionIds)} />}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  )
}

function DeleteItem({ onDelete }: { onDelete: () => void }) {
  return (
    <Menu.Item onClick={onDelete} className={cn(ITEM, 'text-failed data-highlighted:bg-failed-wash')}>
      <Trash2 className="size-4" aria-hidden />
      Delete chat
    </Menu.Item>
  )
}

function ReadItem({ summary }: { summary: SessionSummary }) {
  const { sessionId, endedAt, running, unread } = summary
  if (endedAt === undefined || running) return null
  return (
    <Item
      icon={unread ? MailOpen : Mail}
      onClick={() => void mark({ sessionIds: [sessionId], seen: unread === true })}
    >
      {unread ? 'Mark as read' : 'Mark as unread'}
    </Item>
  )
}

function ProjectSubmenu(props: {
  summary: SessionSummary
  host: RefObject<HTMLElement | null>
  onNewProject: (sessionId: string) => void
}) {
  const { summary, host } = props
  const { sessionId } = summary
  const projects = useChatListState((state) => state.projects)
  return (
    <Menu.SubmenuRoot>
      <Menu.SubmenuTrigger className={ITEM}>
        <Folder className="size-4 text-muted" aria-hidden />
        <span className="flex-1">Project</span>
        <ChevronRight className="size-4 text-faint" aria-hidden />
      </Menu.SubmenuTrigger>
      <Menu.Portal container={host}>
        <Menu.Positioner positionMethod="fixed" alignOffset={-6} sideOffset={-4} className="z-50">
          <Menu.Popup className={POPUP}>
            {(projects ?? []).map(({ id, name }) => (
              <Item
                key={id}
                icon={summary.project === id ? Check : Folder}
                onClick={() =>
                  void mark({ sessionIds: [sessionId], project: summary.project === id ? null : id })
                }
              >
                <span dir="auto" className="max-w-48 truncate">
                  <Revealed text={name} />
                </span>
                {summary.project === id && <span className="sr-only">, take it out</span>}
              </Item>
            ))}
            <Item icon={FolderPlus} onClick={() => props.onNewProject(sessionId)}>
              New project…
            </Item>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.SubmenuRoot>
  )
}

function Item(props: { icon: LucideIcon; onClick: () => void; children: ReactNode }) {
  const { icon: Icon } = props
  return (
    <Menu.Item onClick={props.onClick} className={ITEM}>
      <Icon className="size-4 text-muted" aria-hidden />
      {props.children}
    </Menu.Item>
  )
}
