/** A user's marks on chats: pinned, archived, read, in projects. Each user has their own. */
import { z } from 'zod'
import { sessionId } from '../base/ids.ts'
import { instructionText } from '../base/instruction-text.ts'
import { mode } from './mode.ts'
import { modelChoice } from './model-choice.ts'

/** Chats in one request. */
const MAX_MARKED = 200
/** Projects of one user. */
export const MAX_PROJECTS = 100

export const projectId = z.string().min(1).max(64)

/** `PUT /api/sessions/marks` → 204. Absent members do not change. */
export const chatMarks = z.strictObject({
  sessionIds: z.array(sessionId).min(1).max(MAX_MARKED),
  pinned: z.boolean().optional(),
  archived: z.boolean().optional(),
  /** Null: none. Only for one's own chats. */
  project: projectId.nullable().optional(),
  /** True: everything until now is read. False: the last end is unread again. */
  seen: z.boolean().optional(),
})
export type ChatMarks = z.infer<typeof chatMarks>

/** A project's folder, relative to the workspace; empty: the workspace itself. */
const folder = z
  .string()
  .max(300)
  .transform((path) =>
    path
      .trim()
      .replace(/^\/?workspace(\/|$)/, '')
      .replaceAll(/^\/+|\/+$/g, ''),
  )
  .refine(
    (path) =>
      path === '' ||
      (path.split('/').every((part) => !['', '.', '..'].includes(part)) &&
        !Array.from(path).some((character) => character < ' ' || character === '\u007f')),
    'a folder is a path in the workspace, without “..”',
  )

/** `POST /api/projects` → 201 `Project`; `PUT /api/projects/:id` → the same. */
export const newProject = z.strictObject({
  name: z.string().trim().min(1).max(100),
  folder: folder.default(''),
  /** Instructions for the agent in its chats, after the user's own. */
  instructions: instructionText.default(''),
  /** The mode of its new chats; null: the user's default. */
  mode: mode.nullable().default(null),
  model: modelChoice.model.unwrap().nullable().default(null),
})
export type NewProject = z.infer<typeof newProject>

export const project = newProject.extend({ id: projectId })
export type Project = z.infer<typeof project>

/** `GET /api/projects`, by name. `DELETE /api/projects/:id` → 204; its chats stay. */
export const projectList = z.object({ projects: z.array(project) })
