/** Actions in a user's workspace: files, commands, terminals, ports, the sandbox. */
import { z } from 'zod'
import { type Action, acts, rowsFor } from '../base/action.ts'
import { GUEST_ERRORS } from '../base/guest-errors.ts'
import { execRequest, execResponse } from './exec.ts'
import {
  directoryList,
  fileRemoved,
  fileRestored,
  filesFound,
  folderRequest,
  moveRequest,
  trashList,
} from './files.ts'
import { portList } from './ports.ts'
import { backgroundJobs, jobId, jobOutput, sandboxView } from './sandbox.ts'
import { openTerminalRequest, openedTerminal, terminalId, terminalList } from './terminals.ts'

const files = rowsFor({ scope: 'files', guests: GUEST_ERRORS.files })
const exec = rowsFor({ scope: 'exec', guests: GUEST_ERRORS.sandbox })
const fileAct = acts('files')
const sandbox = acts('sandbox')
const terminals = acts('terminals')
const job = z.object({ id: jobId })

export const workspaceActions = {
  listFiles: files('GET /api/files', { response: directoryList }),
  removeFile: files('DELETE /api/files', { response: fileRemoved }),
  readFile: files('GET /api/files/content', { response: 'bytes' }),
  writeFile: files('PUT /api/files/content', { request: 'bytes' }),
  previewFile: files('GET /api/files/preview', { response: 'bytes' }),
  findFiles: files('GET /api/files/search', { response: filesFound }),
  zipFiles: files('GET /api/files/zip', { response: 'bytes' }),
  makeFolder: files('POST /api/files/folder', { request: folderRequest, agent: fileAct('mkdir') }),
  moveFile: files('POST /api/files/move', { request: moveRequest, agent: fileAct('move') }),
  listTrash: files('GET /api/files/trash', { response: trashList, agent: fileAct('trash') }),
  emptyTrash: files('DELETE /api/files/trash', { agent: fileAct('empty_trash') }),
  restoreFile: files('POST /api/files/trash/:id/restore', {
    response: fileRestored,
    agent: fileAct('restore'),
  }),
  abortUpload: files('DELETE /api/files/uploads/:upload', { agent: fileAct('abort') }),
  runCommand: exec('POST /api/exec', { request: execRequest, response: execResponse }),
  listPorts: exec('GET /api/ports', { response: portList }),
  openPort: exec('GET /api/ports/:port/open', { response: 'bytes' }),
  getSandbox: exec('GET /api/sandbox', { response: sandboxView, agent: sandbox('view') }),
  resetSandbox: exec('POST /api/sandbox/reset', { agent: sandbox('reset') }),
  stopSandbox: exec('POST /api/sandbox/stop', { agent: sandbox('stop') }),
  listJobs: exec('GET /api/sandbox/jobs', { response: backgroundJobs, agent: sandbox('jobs') }),
  getJobOutput: exec('GET /api/sandbox/jobs/:id/output', {
    params: job,
    response: jobOutput,
    agent: sandbox('output'),
  }),
  endJob: exec('DELETE /api/sandbox/jobs/:id', { params: job, agent: sandbox('end') }),
  listTerminals: exec('GET /api/terminals', { response: terminalList, agent: terminals('list') }),
  openTerminal: exec('POST /api/terminals', {
    request: openTerminalRequest,
    response: openedTerminal,
    status: 201,
    agent: terminals('open'),
  }),
  attachTerminal: exec('GET /api/terminals/:id', { response: 'bytes' }),
  closeTerminal: exec('DELETE /api/terminals/:id', {
    params: z.object({ id: terminalId }),
    agent: terminals('close'),
  }),
} satisfies Record<string, Action>
