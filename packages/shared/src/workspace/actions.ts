/** Actions in a user's workspace: files, commands, terminals, ports, the sandbox. */
import { z } from 'zod'
import { ask, type Action } from '../base/action.ts'
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

const job = z.object({ id: jobId })

export const workspaceActions = {
  listFiles: { route: 'GET /api/files', scope: 'files', response: directoryList },
  removeFile: { route: 'DELETE /api/files', scope: 'files', response: fileRemoved },
  readFile: { route: 'GET /api/files/content', scope: 'files', response: 'bytes' },
  writeFile: { route: 'PUT /api/files/content', scope: 'files', request: 'bytes' },
  previewFile: { route: 'GET /api/files/preview', scope: 'files', response: 'bytes' },
  findFiles: { route: 'GET /api/files/search', scope: 'files', response: filesFound },
  zipFiles: { route: 'GET /api/files/zip', scope: 'files', response: 'bytes' },
  makeFolder: {
    route: 'POST /api/files/folder',
    scope: 'files',
    request: folderRequest,
    agent: ask('files', 'mkdir'),
  },
  moveFile: {
    route: 'POST /api/files/move',
    scope: 'files',
    request: moveRequest,
    agent: ask('files', 'move'),
  },
  listTrash: {
    route: 'GET /api/files/trash',
    scope: 'files',
    response: trashList,
    agent: ask('files', 'trash'),
  },
  emptyTrash: { route: 'DELETE /api/files/trash', scope: 'files', agent: ask('files', 'empty_trash') },
  restoreFile: {
    route: 'POST /api/files/trash/:id/restore',
    scope: 'files',
    response: fileRestored,
    agent: ask('files', 'restore'),
  },
  abortUpload: { route: 'DELETE /api/files/uploads/:upload', scope: 'files', agent: ask('files', 'abort') },
  runCommand: { route: 'POST /api/exec', scope: 'exec', request: execRequest, response: execResponse },
  listPorts: { route: 'GET /api/ports', scope: 'exec', response: portList },
  openPort: { route: 'GET /api/ports/:port/open', scope: 'exec', response: 'bytes' },
  getSandbox: {
    route: 'GET /api/sandbox',
    scope: 'exec',
    response: sandboxView,
    agent: ask('sandbox', 'view'),
  },
  resetSandbox: { route: 'POST /api/sandbox/reset', scope: 'exec', agent: ask('sandbox', 'reset') },
  stopSandbox: { route: 'POST /api/sandbox/stop', scope: 'exec', agent: ask('sandbox', 'stop') },
  listJobs: {
    route: 'GET /api/sandbox/jobs',
    scope: 'exec',
    response: backgroundJobs,
    agent: ask('sandbox', 'jobs'),
  },
  getJobOutput: {
    route: 'GET /api/sandbox/jobs/:id/output',
    scope: 'exec',
    params: job,
    response: jobOutput,
    agent: ask('sandbox', 'output'),
  },
  endJob: { route: 'DELETE /api/sandbox/jobs/:id', scope: 'exec', params: job, agent: ask('sandbox', 'end') },
  listTerminals: {
    route: 'GET /api/terminals',
    scope: 'exec',
    response: terminalList,
    agent: ask('terminals', 'list'),
  },
  openTerminal: {
    route: 'POST /api/terminals',
    scope: 'exec',
    request: openTerminalRequest,
    response: openedTerminal,
    status: 201,
    agent: ask('terminals', 'open'),
  },
  attachTerminal: { route: 'GET /api/terminals/:id', scope: 'exec', response: 'bytes' },
  closeTerminal: {
    route: 'DELETE /api/terminals/:id',
    scope: 'exec',
    params: z.object({ id: terminalId }),
    agent: ask('terminals', 'close'),
  },
} as const satisfies Record<string, Action>
