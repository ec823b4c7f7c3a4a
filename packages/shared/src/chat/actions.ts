/** Actions on chats: their messages, images, shares, projects. */
import { ask, type Action } from '../base/action.ts'
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
const marking = { method: '_sandlot/mark_chats', fields: {}, body: 'marks' }

export const chatActions = {
  prompt: { route: 'POST /api/chat', scope: 'chat', request: chatRequest, response: chatResponse },
  listChats: { route: 'GET /api/sessions', scope: 'read', response: sessionList },
  markChats: { route: 'PUT /api/sessions/marks', scope: 'chat', request: chatMarks, agent: marking },
  getChat: { route: 'GET /api/sessions/:id', scope: 'read', response: sessionSummary },
  renameChat: { route: 'PATCH /api/sessions/:id', scope: 'chat', request: renameRequest },
  deleteChat: { route: 'DELETE /api/sessions/:id', scope: 'chat' },
  forkChat: {
    route: 'POST /api/sessions/:id/fork',
    scope: 'chat',
    request: forkRequest,
    response: forkResult,
    status: 201,
  },
  cancelPrompt: { route: 'POST /api/sessions/:id/cancel', scope: 'chat' },
  listApprovals: { route: 'GET /api/sessions/:id/approvals', scope: 'read', response: pendingApprovalList },
  answerApproval: {
    route: 'POST /api/sessions/:id/approvals/:callId',
    scope: 'chat',
    request: approvalAnswer,
  },
  listWaiting: { route: 'GET /api/approvals', scope: 'read', response: waitingApprovals },
  exportPrompt: { route: 'GET /api/sessions/:id/prompts/:promptId/export', scope: 'read', response: 'bytes' },
  exportChat: { route: 'GET /api/sessions/:id/export', scope: 'read', response: 'bytes' },
  getOutput: { route: 'GET /api/sessions/:id/outputs/:callId', scope: 'read', response: 'bytes' },
  getChatImage: { route: 'GET /api/sessions/:id/images/:seq/:index', scope: 'read', response: 'bytes' },
  listShares: { route: 'GET /api/sessions/:id/shares', scope: 'read', response: shareList },
  putShare: {
    route: 'POST /api/sessions/:id/shares',
    scope: 'cookie',
    request: newShare,
    response: share,
    status: 201,
  },
  removeShare: { route: 'DELETE /api/sessions/:id/shares/:shareId', scope: 'chat' },
  listSnapshots: { route: 'GET /api/sessions/:id/snapshots', scope: 'read', response: snapshotList },
  makeSnapshot: {
    route: 'POST /api/sessions/:id/snapshots',
    scope: 'cookie',
    request: newSnapshot,
    response: snapshot,
    status: 201,
  },
  removeSnapshot: { route: 'DELETE /api/sessions/:id/snapshots/:snapshotId', scope: 'chat' },
  comment: {
    route: 'POST /api/sessions/:id/comments',
    scope: 'chat',
    request: newComment,
    response: commented,
    status: 201,
  },
  getSnapshot: { route: 'GET /api/snapshots/:id', scope: 'read', response: snapshotView },
  getSnapshotOutput: { route: 'GET /api/snapshots/:id/outputs/:callId', scope: 'read', response: 'bytes' },
  getSnapshotImage: { route: 'GET /api/snapshots/:id/images/:seq/:index', scope: 'read', response: 'bytes' },
  findPeople: { route: 'GET /api/people', scope: 'read', response: directory },
  listProjects: { route: 'GET /api/projects', scope: 'read', response: projectList },
  addProject: {
    route: 'POST /api/projects',
    scope: 'cookie',
    request: newProject,
    response: project,
    status: 201,
  },
  changeProject: { route: 'PUT /api/projects/:id', scope: 'cookie', request: newProject, response: project },
  removeProject: { route: 'DELETE /api/projects/:id', scope: 'cookie', agent: ask('projects', 'remove') },
  uploadImage: {
    route: 'POST /api/images',
    scope: 'files',
    request: 'bytes',
    response: uploadedImage,
    status: 201,
  },
  getImage: { route: 'GET /api/images/:id', scope: 'files', response: 'bytes' },
  removeImage: { route: 'DELETE /api/images/:id', scope: 'files' },
} as const satisfies Record<string, Action>
