/** The list of chats in its groups: pinned, projects, then by age. */
import type { Project } from '@sandlot/shared/chat/chats'
import type { SessionSummary } from '@sandlot/shared/chat/frames'
import { ageGroup } from '../lib/format.ts'

export interface ListGroup {
  key: string
  title: string
  project?: Project
  sessions: readonly SessionSummary[]
}

/** `sessions` newest first. A pinned chat stands with the pinned ones only. */
export function listGroups(
  sessions: readonly SessionSummary[],
  projects: readonly Project[],
  now: number,
): ListGroup[] {
  const pinned = sessions.filter((summary) => summary.pinned === true)
  const rest = sessions.filter((summary) => summary.pinned !== true)
  const known = new Set(projects.map(({ id }) => id))
  const isInProject = ({ project }: SessionSummary) => project !== undefined && known.has(project)
  const byAge = Map.groupBy(
    rest.filter((summary) => !isInProject(summary)),
    ({ updatedAt }) => ageGroup(updatedAt, now),
  )
  return [
    ...(pinned.length === 0 ? [] : [{ key: 'pinned', title: 'Pinned', sessions: pinned }]),
    ...projects.map((project) => ({
      key: project.id,
      title: project.name,
      project,
      sessions: rest.filter((summary) => summary.project === project.id),
    })),
    ...[...byAge].map(([title, members]) => ({ key: title, title, sessions: members })),
  ]
}
