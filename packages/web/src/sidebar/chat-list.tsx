/** The chats themselves: pinned, projects, by age; or the archive. */
import type { Project } from '@sandlot/shared/chat/chats'
import { messageOf } from '@sandlot/shared/base/errors'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import { Archive, ArrowLeft, ChevronRight, Ellipsis, Folder, FolderPlus, SquarePen } from 'lucide-react'
import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { useChat, useChatState } from '../state/chat-context.ts'
import { RenameDialog } from '../chat/chat-menu.tsx'
import { cn } from '../lib/cn.ts'
import { browserStorage } from '../lib/storage.ts'
import { call } from '../net/call.ts'
import { usePages } from '../state/use-pages.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { beginIn, chooseNone, loadProjects, mark, useChatListState } from '../state/chat-list-state.ts'
import { type ListGroup, listGroups } from './list-groups.ts'
import { ProjectDialog } from './project-dialog.tsx'
import { SessionItem } from './session-item.tsx'
import { useDeleteChats } from './use-delete-chats.ts'
import { Menu } from '../ui/on-demand.tsx'

const FOLDED_KEY = 'sandlot.folded'

/**
 * `found`: chats that a search has found by their names, in place of all. `shared`: only those of
 * others.
 */
export function ChatList(props: {
  found: readonly SessionSummary[] | null
  shared: boolean
  onPick: () => void
}) {
  const { found, onPick } = props
  const sessions = useChatState((state) => state.sessions)
  const activeId = useChatState((state) => state.activeId)
  const { chosen } = useChatListState()
  const [inArchive, setInArchive] = useState(false)
  /** `null`: a new one. */
  const [project, setProject] = useState<{ edited: Project | null; add?: string } | undefined>()
  const [renamed, setRenamed] = useState<string | null>(null)
  const deleteChats = useDeleteChats()
  usePinnedChats()

  const item = (summary: SessionSummary) => (
    <SessionItem
      key={summary.sessionId}
      summary={summary}
      active={summary.sessionId === activeId}
      onRename={setRenamed}
      onDelete={deleteChats}
      onNewProject={(add) => setProject({ edited: null, add })}
      onPick={onPick}
    />
  )
  return (
    <>
      {chosen !== null && <Chosen chosen={chosen} onDelete={deleteChats} />}
      {inArchive && found === null ? (
        <ArchiveList onBack={() => setInArchive(false)} item={item} />
      ) : (
        <AllChats
          {...props}
          item={item}
          onProject={(edited) => setProject({ edited })}
          onArchive={() => setInArchive(true)}
        />
      )}
      {renamed !== null && (
        <RenameDialog
          sessionId={renamed}
          title={sessions?.find(({ sessionId }) => sessionId === renamed)?.title ?? ''}
          onClose={() => setRenamed(null)}
        />
      )}
      {project !== undefined && (
        <ProjectDialog
          project={project.edited}
          onClose={() => setProject(undefined)}
          onSaved={({ id }) =>
            project.add !== undefined && void mark({ sessionIds: [project.add], project: id })
          }
        />
      )}
    </>
  )
}

/** `onProject`: edit this project, or a new one. */
function AllChats(props: {
  found: readonly SessionSummary[] | null
  shared: boolean
  item: (summary: SessionSummary) => ReactNode
  onPick: () => void
  onProject: (project: Project | null) => void
  onArchive: () => void
}) {
  const { found, shared } = props
  const { chat } = useChat()
  const sessions = useChatState((state) => state.sessions)
  const more = useChatState((state) => state.nextPage !== null)
  const [problem, setProblem] = useState<string | null>(null)
  const groups = useGroups(found, shared)
  return (
    <>
      {groups.map((group) => (
        <Group
          key={group.key}
          group={group}
          item={props.item}
          onPick={props.onPick}
          onEdit={props.onProject}
        />
      ))}
      {found === null && more && (
        <Button
          size="sm"
          variant="ghost"
          className="mt-2"
          onClick={() => void chat.loadOlder().then(setProblem)}
        >
          Show older chats
        </Button>
      )}
      {problem !== null && <Alert>{problem}</Alert>}
      {found === null && sessions !== null && sessions.length > 0 && (
        <ListFoot onNewProject={() => props.onProject(null)} onArchive={props.onArchive} />
      )}
    </>
  )
}

function Group(props: {
  group: ListGroup
  item: (summary: SessionSummary) => ReactNode
  onPick: () => void
  onEdit: (project: Project) => void
}) {
  const { group, item } = props
  return group.project === undefined ? (
    <section aria-label={group.title}>
      <h2 className="px-2.5 pt-4 pb-1 text-xs font-medium text-faint">{group.title}</h2>
      <ul className="flex flex-col gap-px">{group.sessions.map(item)}</ul>
    </section>
  ) : (
    <ProjectGroup
      project={group.project}
      count={group.sessions.length}
      onPick={props.onPick}
      onEdit={props.onEdit}
    >
      {group.sessions.map(item)}
    </ProjectGroup>
  )
}

function useGroups(found: readonly SessionSummary[] | null, shared: boolean): ListGroup[] {
  const { me } = useChat()
  const sessions = useChatState((state) => state.sessions)
  const { projects, doomed } = useChatListState()
  const isGuest = me.role === 'guest'
  return useMemo((): ListGroup[] => {
    const shown = (sessions ?? []).filter(({ sessionId }) => !doomed.has(sessionId))
    if (found !== null) return foundGroup(found, shown, doomed)
    const listed = shown.filter(
      ({ archived, owner }) => archived !== true && (!shared || owner !== undefined),
    )
    return listGroups(listed, shared || isGuest ? [] : (projects ?? []), Date.now())
  }, [found, sessions, shared, doomed, projects, isGuest])
}

function ListFoot(props: { onNewProject: () => void; onArchive: () => void }) {
  const { me } = useChat()
  return (
    <div className="mt-4 flex flex-col border-t border-line pt-2">
      {me.role !== 'guest' && (
        <FootButton icon={FolderPlus} onClick={props.onNewProject}>
          New project
        </FootButton>
      )}
      <FootButton icon={Archive} onClick={props.onArchive}>
        Archive
      </FootButton>
    </div>
  )
}

/** Rows as in the list, where it has them: with running work and pending approvals. */
function foundGroup(
  found: readonly SessionSummary[],
  known: readonly SessionSummary[],
  doomed: ReadonlySet<string>,
): ListGroup[] {
  const left = found.filter(({ sessionId }) => !doomed.has(sessionId))
  if (left.length === 0) return []
  const byId = new Map(known.map((summary) => [summary.sessionId, summary]))
  const sessions = left.map((summary) => byId.get(summary.sessionId) ?? summary)
  return [{ key: 'found', title: 'Found', sessions }]
}

const MOST_PINNED = 200

/** Projects, and chats that are pinned however old they are. */
function usePinnedChats(): void {
  const { chat, me } = useChat()
  const isGuest = me.role === 'guest'
  const connected = useChatState((state) => state.connection.status === 'open')
  useEffect(() => {
    if (!connected) return
    if (!isGuest) void loadProjects()
    // Without them the list is only shorter.
    call('listChats', { query: { pinned: true, archived: false, limit: MOST_PINNED } }).then(
      ({ sessions }) => chat.addListed(sessions),
      () => undefined,
    )
  }, [chat, isGuest, connected])
}

function FootButton(props: { icon: typeof Archive; onClick: () => void; children: string }) {
  const { icon: Icon } = props
  return (
    <button
      type="button"
      onClick={props.onClick}
      className="flex h-8 items-center gap-2.5 rounded-lg px-2.5 text-sm text-muted hover:bg-hover hover:text-ink pointer-coarse:h-11"
    >
      <Icon className="size-4 text-faint" aria-hidden />
      {props.children}
    </button>
  )
}

/** Actions on several selected chats. */
function Chosen(props: { chosen: ReadonlySet<string>; onDelete: (sessionIds: readonly string[]) => void }) {
  const sessionIds = [...props.chosen]
  const sessions = useChatState((state) => state.sessions)
  const others = sessions?.some(({ sessionId, owner }) => owner !== undefined && props.chosen.has(sessionId))
  const none = sessionIds.length === 0
  const done = (work: void | Promise<void>) => {
    void work
    chooseNone()
  }
  return (
    <div
      role="group"
      aria-label="Selected chats"
      className="sticky top-0 z-10 flex flex-wrap items-center gap-1 rounded-lg border border-line bg-raised p-1.5 shadow-1"
    >
      <span role="status" className="min-w-0 flex-1 px-1 text-xs text-muted">
        {sessionIds.length} chosen
      </span>
      <Button size="sm" disabled={none} onClick={() => done(mark({ sessionIds, archived: true }))}>
        Archive
      </Button>
      <Button
        size="sm"
        variant="danger"
        disabled={none || others}
        title={others ? 'Some belong to other people' : undefined}
        onClick={() => done(props.onDelete(sessionIds))}
      >
        Delete
      </Button>
      <Button size="sm" variant="ghost" onClick={chooseNone}>
        Cancel
      </Button>
    </div>
  )
}

function ArchiveList(props: { onBack: () => void; item: (summary: SessionSummary) => ReactNode }) {
  const sessions = useChatState((state) => state.sessions)
  const doomed = useChatListState((state) => state.doomed)
  const [problem, setProblem] = useState<string | null>(null)
  const { found, more } = usePages('archive', async (before, signal) => {
    const { sessions: items, next } = await call('listChats', { query: { archived: true, before }, signal })
    return { items, next }
  })
  const known = new Map((sessions ?? []).map((summary) => [summary.sessionId, summary]))
  const items = found.state === 'found' ? found.items : []
  const shown = items
    .map((summary) => known.get(summary.sessionId) ?? summary)
    .filter(({ sessionId, archived }) => archived === true && !doomed.has(sessionId))
  return (
    <section aria-label="Archive">
      <div className="flex items-center gap-1 pt-2 pb-1">
        <Button size="sm" variant="ghost" onClick={props.onBack}>
          <ArrowLeft className="size-4" aria-hidden /> All chats
        </Button>
        <h2 className="text-xs font-medium text-faint">Archive</h2>
      </div>
      {found.state === 'failed' && <Alert>{found.problem}</Alert>}
      {found.state === 'found' && shown.length === 0 && (
        <p className="px-2.5 py-3 text-sm text-faint">
          No archived chats. Archived chats leave the list but stay searchable.
        </p>
      )}
      <ul className="flex flex-col gap-px">{shown.map(props.item)}</ul>
      {problem !== null && <Alert>{problem}</Alert>}
      {found.state === 'found' && found.next !== null && (
        <Button size="sm" variant="ghost" className="mt-2" onClick={() => void more().then(setProblem)}>
          Show older chats
        </Button>
      )}
    </section>
  )
}

const ITEM =
  'flex h-8 pointer-coarse:h-11 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm outline-none data-highlighted:bg-hover'

function ProjectGroup(props: {
  project: Project
  count: number
  onPick: () => void
  onEdit: (project: Project) => void
  children: ReactNode
}) {
  const { project } = props
  const [, navigate] = useLocation()
  const [folded, setFolded] = useFolded(project.id)
  const [removing, setRemoving] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const host = useRef<HTMLElement>(null)
  useChatsOfProject(project.id, folded)
  const begin = () => {
    beginIn(project.id)
    navigate('/')
    props.onPick()
  }
  const remove = () => {
    call('removeProject', { params: { id: project.id } }).then(loadProjects, (error: unknown) =>
      setProblem(messageOf(error)),
    )
  }
  return (
    <section ref={host} aria-label={project.name} className="group/project pt-2">
      <div className="relative flex items-center rounded-lg hover:bg-hover">
        <FoldButton name={project.name} folded={folded} onFold={setFolded} />
        <NewChatButton name={project.name} onClick={begin} />
        <ProjectMenu
          project={project}
          host={host}
          onEdit={() => props.onEdit(project)}
          onRemove={() => setRemoving(true)}
        />
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      {!folded &&
        (props.count === 0 ? (
          <p className="px-2.5 py-1.5 text-xs text-faint">No chats yet.</p>
        ) : (
          <ul className="ml-3 flex flex-col gap-px border-l border-line pl-1">{props.children}</ul>
        ))}
      <ConfirmDialog
        open={removing}
        title="Remove this project?"
        confirm="Remove"
        onCancel={() => setRemoving(false)}
        onConfirm={() => {
          setRemoving(false)
          remove()
        }}
      >
        {`Removes “${project.name}” and its instructions. Chats and files are kept.`}
      </ConfirmDialog>
    </section>
  )
}

function NewChatButton({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <button
      type="button"
      aria-label={`New chat in ${name}`}
      title="New chat"
      onClick={onClick}
      className="inline-flex size-7 items-center justify-center rounded-md text-faint hover:bg-hover hover:text-ink pointer-coarse:size-11"
    >
      <SquarePen className="size-4" aria-hidden />
    </button>
  )
}

function FoldButton(props: { name: string; folded: boolean; onFold: (folded: boolean) => void }) {
  const { name, folded } = props
  return (
    <button
      type="button"
      aria-expanded={!folded}
      onClick={() => props.onFold(!folded)}
      className="flex min-h-8 min-w-0 flex-1 items-center gap-2 rounded-lg px-2.5 text-left text-sm pointer-coarse:min-h-11"
    >
      <Folder className="size-4 shrink-0 text-faint" aria-hidden />
      <h2 dir="auto" className="min-w-0 truncate font-medium">
        <Revealed text={name} />
      </h2>
      <ChevronRight
        className={cn('size-3.5 shrink-0 text-faint transition-transform', !folded && 'rotate-90')}
        aria-hidden
      />
    </button>
  )
}

function ProjectMenu(props: {
  project: Project
  host: RefObject<HTMLElement | null>
  onEdit: () => void
  onRemove: () => void
}) {
  const { project, host } = props
  return (
    <Menu.Root>
      <Menu.Trigger
        aria-label={`Options for project ${project.name}`}
        className="mr-1 inline-flex size-7 items-center justify-center rounded-md text-faint hover:bg-hover hover:text-ink pointer-coarse:size-11"
      >
        <Ellipsis className="size-4" aria-hidden />
      </Menu.Trigger>
      <Menu.Portal container={host}>
        <Menu.Positioner positionMethod="fixed" side="bottom" align="end" sideOffset={4} className="z-50">
          <Menu.Popup className="popup min-w-40 rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none">
            <Menu.Item className={ITEM} onClick={props.onEdit}>
              Edit…
            </Menu.Item>
            <Menu.Item
              className={cn(ITEM, 'text-failed data-highlighted:bg-failed-wash')}
              onClick={props.onRemove}
            >
              Remove project…
            </Menu.Item>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  )
}

/** Chats of an open project, however old they are. */
function useChatsOfProject(id: string, folded: boolean): void {
  const { chat } = useChat()
  useEffect(() => {
    if (folded) return
    // Without them the list is only shorter.
    call('listChats', { query: { archived: false, project: id } }).then(
      ({ sessions }) => chat.addListed(sessions),
      () => undefined,
    )
  }, [chat, folded, id])
}

/** Stored in this browser. */
function useFolded(id: string): [boolean, (folded: boolean) => void] {
  const read = () => (browserStorage('local').get(FOLDED_KEY) ?? '').split(' ')
  const [folded, setFolded] = useState(() => read().includes(id))
  return [
    folded,
    (next) => {
      const others = read().filter((one) => one !== id && one !== '')
      browserStorage('local').set(FOLDED_KEY, [...others, ...(next ? [id] : [])].join(' '))
      setFolded(next)
    },
  ]
}
