/** Actions on chats: their messages, images, shares, projects. */
import { type Action, acts, chat, cookie, read, rowsFor } from '../base/action.ts'
import { GUEST_ERRORS } from '../base/guest-errors.ts'
import {
  approvalAnswer,
  chatRequest,
  chatResponse,
  forkRequest,
  forkResult,
  renameRequest,
  sessionList,
} from './chat-api.ts'
import { chatMarks, newProject, project, projectList } from './chats.ts'
import { sessionSummary } from './frames.ts'
import { uploadedImage } from './images.ts'
import { waitingApprovals } from './pending.ts'
import { pendingApprovalList } from './pending-approvals.ts'
import { directory, snapshotView } from './shares-api.ts'
import { newComment, newShare, newSnapshot, share, shareList, snapshot, snapshotList } from './shares.ts'

const commented = newComment.pick({ commentId: true })
const files = rowsFor({ scope: 'files' })
const projects = acts('projects')
const inSession = <const Name extends string>(name: Name) =>
  ({ method: `_sandlot/${name}`, fields: {}, session: true }) as const
const snapshots = { ...inSession('snapshots'), fields: { do: 'list' } } as const
const marking = { method: '_sandlot/mark_chats', fields: {}, body: 'marks' } as const

export const chatActions = {
  prompt: chat('POST /api/chat', { request: chatRequest, response: chatResponse }),
  listChats: read('GET /api/sessions', { response: sessionList }),
  markChats: chat('PUT /api/sessions/marks', { request: chatMarks, agent: marking }),
  getChat: read('GET /api/sessions/:id', { response: sessionSummary }),
  renameChat: chat('PATCH /api/sessions/:id', { request: renameRequest, agent: inSession('rename') }),
  deleteChat: chat('DELETE /api/sessions/:id'),
  forkChat: chat('POST /api/sessions/:id/fork', {
    request: forkRequest,
    response: forkResult,
    status: 201,
    guests: GUEST_ERRORS.chats,
    agent: inSession('fork'),
  }),
  cancelPrompt: chat('POST /api/sessions/:id/cancel'),
  listApprovals: read('GET /api/sessions/:id/approvals', {
    response: pendingApprovalList,
    agent: inSession('approvals'),
  }),
  answerApproval: chat('POST /api/sessions/:id/approvals/:callId', { request: approvalAnswer }),
  listWaiting: read('GET /api/approvals', { response: waitingApprovals }),
  exportPrompt: read('GET /api/sessions/:id/prompts/:promptId/export', { response: 'bytes' }),
  exportChat: read('GET /api/sessions/:id/export', { response: 'bytes' }),
  getOutput: read('GET /api/sessions/:id/outputs/:callId', { response: 'bytes' }),
  getChatImage: read('GET /api/sessions/:id/images/:seq/:index', { response: 'bytes' }),
  listShares: read('GET /api/sessions/:id/shares', { response: shareList }),
  putShare: cookie('POST /api/sessions/:id/shares', { request: newShare, response: share, status: 201 }),
  removeShare: chat('DELETE /api/sessions/:id/shares/:shareId'),
  listSnapshots: read('GET /api/sessions/:id/snapshots', {
    response: snapshotList,
    agent: snapshots,
  }),
  makeSnapshot: cookie('POST /api/sessions/:id/snapshots', {
    request: newSnapshot,
    response: snapshot,
    status: 201,
  }),
  removeSnapshot: chat('DELETE /api/sessions/:id/snapshots/:snapshotId'),
  comment: chat('POST /api/sessions/:id/comments', { request: newComment, response: commented, status: 201 }),
  getSnapshot: read('GET /api/snapshots/:id', { response: snapshotView }),
  getSnapshotOutput: read('GET /api/snapshots/:id/outputs/:callId', { response: 'bytes' }),
  getSnapshotImage: read('GET /api/snapshots/:id/images/:seq/:index', { response: 'bytes' }),
  findPeople: read('GET /api/people', { response: directory, guests: GUEST_ERRORS.shares }),
  listProjects: read('GET /api/projects', { response: projectList }),
  addProject: cookie('POST /api/projects', {
    request: newProject,
    response: project,
    status: 201,
    guests: GUEST_ERRORS.projects,
  }),
  changeProject: cookie('PUT /api/projects/:id', { request: newProject, response: project }),
  removeProject: cookie('DELETE /api/projects/:id', { agent: projects('remove') }),
  uploadImage: files('POST /api/images', { request: 'bytes', response: uploadedImage, status: 201 }),
  getImage: files('GET /api/images/:id', { response: 'bytes' }),
  removeImage: files('DELETE /api/images/:id'),
} satisfies Record<string, Action>
