/** Requests about a person's chats. Failures are `ApiError`s. */
import {
  type ChatMarks,
  type NewProject,
  type Project,
  project,
  projectList,
} from '@sandlot/shared/chat/chats'
import { type SessionList, sessionList } from '@sandlot/shared/chat/chat-api'
import { z } from 'zod'
import { call } from './http.ts'

const PINNED_AT_MOST = 200
const nothing = z.unknown()

export async function markChats(marks: ChatMarks): Promise<void> {
  await call(nothing, 'PUT', '/api/sessions/marks', marks)
}

/** All that are pinned, however old. */
export function fetchPinned(): Promise<SessionList> {
  return call(sessionList, 'GET', `/api/sessions?pinned=true&archived=false&limit=${PINNED_AT_MOST}`)
}

/** A page, newest first. */
export function fetchArchived(before?: number): Promise<SessionList> {
  const page = before === undefined ? '' : `&before=${before}`
  return call(sessionList, 'GET', `/api/sessions?archived=true${page}`)
}

/** A page of the chats of a project, newest first. */
export function fetchOfProject(id: string): Promise<SessionList> {
  return call(sessionList, 'GET', `/api/sessions?archived=false&project=${encodeURIComponent(id)}`)
}

export async function fetchProjects(): Promise<Project[]> {
  return (await call(projectList, 'GET', '/api/projects')).projects
}

/** `id`: of the one to change; absent: a new one. */
export function saveProject(said: NewProject, id?: string): Promise<Project> {
  if (id === undefined) return call(project, 'POST', '/api/projects', said)
  return call(project, 'PUT', `/api/projects/${encodeURIComponent(id)}`, said)
}

/** Its chats stay. */
export async function removeProject(id: string): Promise<void> {
  await call(nothing, 'DELETE', `/api/projects/${encodeURIComponent(id)}`)
}
